// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"

namespace abl::agent {

/// The numbered batches of one run, on disk until the scheduler has acknowledged them. They outlive the
/// worker's program.
///
/// One append-only file of records: length and CRC-32 (4 bytes each, little-endian), then the serialised
/// batch. A torn record at the end, left by a crash in the middle of a write, is dropped when the file is
/// opened again. Acknowledged records go when they are most of a large file; the newest one always stays,
/// because it holds the count. Thread: one at a time.
class RunSpool {
 public:
  /// Opens the run's folder, or creates it. Throws: Error naming the file.
  RunSpool(std::filesystem::path folder, std::uint32_t run);
  ~RunSpool();
  RunSpool(RunSpool&& other) noexcept;
  RunSpool& operator=(RunSpool&&) = delete;

  /// Numbers the batch and writes it; nothing of it stays when that fails. Throws: Error (kResourceExhausted:
  /// the disk is full).
  void append(ablate::v1::RunBatch batch);
  /// For the last words of a run that the disk has no room for: sent like the others, but gone with the
  /// worker.
  void append_in_memory(ablate::v1::RunBatch batch);
  /// The first batch numbered above `seq` that is still kept. Throws: Error when the file cannot be read any
  /// more.
  std::optional<ablate::v1::RunBatch> after(std::uint64_t seq) const;
  /// Every batch up to `seq` is stored. Throws: Error when the file cannot be made smaller; it is then as
  /// before.
  void acknowledge(std::uint64_t seq);

  std::uint64_t last() const { return last_; }                  ///< number of the newest batch; 0: none yet
  std::uint64_t acknowledged() const { return acknowledged_; }  ///< since this program started
  bool ended() const { return ended_; }                         ///< the newest batch ends the run
  /// Deletes what is on disk; nothing may be called after it.
  void remove();

 private:
  struct Record {
    std::uint64_t seq = 0;
    std::uint64_t offset = 0;  ///< of the payload
    std::uint32_t size = 0;
    std::string in_memory;  ///< the payload, where it is not on disk
  };
  void read_records();
  void compact();
  std::string payload(const Record& record) const;

  std::filesystem::path folder_, file_;
  std::uint32_t run_;
  int descriptor_ = -1;
  std::uint64_t end_ = 0;  ///< size of the file
  std::uint64_t last_ = 0, acknowledged_ = 0;
  bool ended_ = false;
  std::deque<Record> records_;  ///< consecutive numbers
};

/// The runs that have a spool in `folder`, by number.
std::vector<std::uint32_t> spooled_runs(const std::filesystem::path& folder);

}  // namespace abl::agent
