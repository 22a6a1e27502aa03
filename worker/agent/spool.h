// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablate/v1/workers.pb.h"

namespace abl::agent {

/// The files in which a worker's runs keep what they say. Each holds a segment of one run, or nothing: one
/// whose run needs it no more is emptied and serves another, since files that come and go with every run cost
/// more than what is written to them (and a file system may look at all that have gone lately before it makes
/// one). A few that are empty are kept, and go with this object. Thread: any.
class SpoolFiles {
 public:
  struct File {
    std::filesystem::path path;
    int descriptor = -1;  ///< for reading and writing; -1: it is not open
  };

  /// Throws: Error when the folder cannot be read.
  explicit SpoolFiles(std::filesystem::path folder);
  ~SpoolFiles();
  SpoolFiles(const SpoolFiles&) = delete;
  SpoolFiles& operator=(const SpoolFiles&) = delete;

  /// An empty one, open. Throws: Error naming it.
  File take();
  /// Empties one that is used no more, and needs no room on the disk for it.
  void give_back(File file);

  const std::filesystem::path& folder() const { return folder_; }
  /// What an earlier program left, by name.
  std::vector<std::filesystem::path> found() const;

 private:
  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::vector<File> empty_;
  std::uint64_t named_ = 0;  ///< the highest number that a name has
};

/// The numbered batches of one run, on disk until the scheduler has acknowledged them. They outlive the
/// worker's program.
///
/// Segments of about 512 KiB, a file each: records of length and CRC-32 (4 bytes each, little-endian) and a
/// serialised batch. A length with its highest bit set is that of a note of the worker's own, which is no
/// batch of the run: its `run` and `token` are the run's, its `seq` the number of the segment's first batch,
/// its `log` what is to be known of the run's program. A segment begins with one, and the newest in it holds.
/// A segment whose batches are all acknowledged is given back, but for the newest, which holds the count. So
/// nothing is ever copied, a full disk hinders no acknowledgement, and memory is a few numbers for each
/// segment, and the newest batch until it is taken. A torn record at the end, left by a crash in the middle
/// of a write, is dropped when the spool is read again.
///
/// Earlier versions had a folder for each run, named by its number, in it segments without notes, named by
/// the number of their first batch, or one file `batches`, and a file `program` in the note's place. They are
/// read, and what follows is kept as today.
///
/// Thread: `append`, `append_in_memory` and `keep_program` one at a time, beside them `after`, `acknowledge`
/// and `remove` one at a time; `take_newest` and the numbers from any.
class RunSpool {
 public:
  /// Of a run that begins: nothing is on disk before the first that is kept. `token` goes with every batch.
  RunSpool(SpoolFiles& files, std::uint32_t run, std::string token);
  ~RunSpool();
  RunSpool(const RunSpool&) = delete;
  RunSpool& operator=(const RunSpool&) = delete;

  /// Numbers the batch and writes it; nothing of it stays when that fails.
  /// Throws: Error (kResourceExhausted: the disk is full).
  void append(ablate::v1::RunBatch batch);
  /// For the last words of a run that the disk has no room for: sent like the others, but gone with the
  /// worker.
  void append_in_memory(ablate::v1::RunBatch batch);
  /// Keeps what is to be known of the run's program, in place of what was kept before.
  /// Throws: as `append`.
  void keep_program(const std::string& record);
  const std::string& program() const { return program_; }  ///< as kept; empty: it was never started

  /// The first batch numbered above `seq` that is still kept.
  /// Throws: Error when it cannot be read any more.
  std::optional<ablate::v1::RunBatch> after(std::uint64_t seq);
  /// The newest batch where it is the next one above `seq` and still in memory: once, without the disk.
  std::optional<ablate::v1::RunBatch> take_newest(std::uint64_t seq);
  /// Every batch up to `seq` is stored.
  void acknowledge(std::uint64_t seq);
  /// Deletes what is on disk; nothing may be called after it but the numbers.
  void remove();

  std::uint64_t last() const;          ///< number of the newest batch; 0: none yet
  std::uint64_t acknowledged() const;  ///< since this program started
  bool ended() const;                  ///< the newest batch ends the run
  std::uint64_t bytes() const;         ///< on disk
  std::uint32_t run() const { return run_; }
  const std::string& token() const { return token_; }

 private:
  friend std::vector<std::unique_ptr<RunSpool>> read_spools(SpoolFiles& files);

  struct Segment {
    std::filesystem::path file;
    std::uint64_t first = 0;  ///< number of its first batch
    std::uint64_t bytes = 0;  ///< whole records
    bool earlier = false;     ///< of an earlier version: in a folder of the run's own
  };
  struct Found;
  /// A file that is open, and a place in it.
  struct Place {
    int descriptor = -1;
    std::filesystem::path file;
    std::uint64_t offset = 0;
    std::uint64_t segment = 0;  ///< of the reader: number of the file's first batch
    std::uint64_t next = 0;     ///< of the reader: number of the batch at `offset`
    void close();
  };
  void read(std::vector<Found> segments);
  bool read_segment(const Found& found);
  void begin_segment();
  void write(std::string_view record);
  std::string note(std::uint64_t first) const;
  bool is_own(const ablate::v1::RunBatch& batch, bool unsaid) const;
  void drop(Segment segment, int descriptor);

  SpoolFiles& files_;
  const std::uint32_t run_;
  std::filesystem::path earlier_;  ///< the folder that an earlier version made for it
  std::string token_;              ///< constant once it is open
  std::string program_;            ///< of the thread that appends
  Place writer_, reader_;

  mutable std::mutex mutex_;  ///< guards what follows; never held while the disk works
  std::deque<Segment> segments_;
  std::uint64_t last_ = 0, acknowledged_ = 0;
  bool ended_ = false;
  std::string last_words_;  ///< the newest batch, where it is not on disk
  std::optional<ablate::v1::RunBatch> newest_;
};

/// What an earlier program has left of its runs, by their numbers. To be called before any file is taken.
/// Throws: Error naming what cannot be read.
std::vector<std::unique_ptr<RunSpool>> read_spools(SpoolFiles& files);

}  // namespace abl::agent
