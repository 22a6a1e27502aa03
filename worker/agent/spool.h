// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ablate/v1/workers.pb.h"

namespace abl::agent {

/// The numbered batches of one run, on disk until the scheduler has acknowledged them. They outlive the
/// worker's program.
///
/// Segments of about 512 KiB, files named by the number of their first batch: records of length and CRC-32
/// (4 bytes each, little-endian) and the serialised batch. A length with its highest bit set is that of a
/// note of the worker's own, which has no number: in the token and the log of a batch it holds the run's
/// token and what is to be known of its program; each segment begins with the newest. A segment whose batches
/// are all acknowledged is deleted, but for the newest: its name and its records hold the count. So nothing
/// is ever copied, a full disk hinders no acknowledgement, and memory is a few numbers for each segment, and
/// the newest batch until it is taken. A torn record at the end, left by a crash in the middle of a write, is
/// dropped when the folder is opened again. Of earlier versions the one file `batches` is read as the first
/// segment, and the file `program` as the note.
///
/// Thread: `append`, `append_in_memory` and `keep_program` one at a time, beside them `after`, `acknowledge`
/// and `remove` one at a time; `take_newest` and the numbers from any.
class RunSpool {
 public:
  /// Of a run that begins: its folder is made by the first that is written. `token` goes with every batch.
  RunSpool(std::filesystem::path folder, std::uint32_t run, std::string token);
  /// What is in the run's folder, if there is one.
  /// Throws: Error naming the file.
  RunSpool(std::filesystem::path folder, std::uint32_t run);
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
  struct Segment {
    std::filesystem::path file;
    std::uint64_t first = 0;  ///< number of its first batch
    std::uint64_t bytes = 0;  ///< whole records
  };
  /// A file that is open, and a place in it.
  struct Place {
    int descriptor = -1;
    std::filesystem::path file;
    std::uint64_t offset = 0;
    std::uint64_t segment = 0;  ///< of the reader: number of the file's first batch
    std::uint64_t next = 0;     ///< of the reader: number of the batch at `offset`
    void open(const std::filesystem::path& path, int flags);
    void close();
  };
  std::vector<std::filesystem::path> segment_files() const;
  bool read_segment(const std::filesystem::path& file);
  void begin_segment();
  void write(std::string_view record);
  void write_note();

  const std::filesystem::path folder_;
  const std::uint32_t run_;
  std::string token_;    ///< constant once it is open
  std::string program_;  ///< of the thread that appends
  Place writer_, reader_;

  mutable std::mutex mutex_;  ///< guards what follows; never held while the disk works
  std::deque<Segment> segments_;
  std::uint64_t last_ = 0, acknowledged_ = 0;
  bool ended_ = false;
  std::string last_words_;  ///< the newest batch, where it is not on disk
  std::optional<ablate::v1::RunBatch> newest_;
};

/// The runs that have a spool in `folder`, by number.
std::vector<std::uint32_t> spooled_runs(const std::filesystem::path& folder);

}  // namespace abl::agent
