// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace abl {

/// Held by the one process that makes `file`; others wait. The lock is a file beside it, gone afterwards.
class MakingLock {
 public:
  /// Waits. Throws: Error when the folder cannot be written.
  explicit MakingLock(const std::filesystem::path& file);
  ~MakingLock();
  MakingLock(const MakingLock&) = delete;
  MakingLock& operator=(const MakingLock&) = delete;

 private:
  std::filesystem::path lock_;
  int descriptor_ = -1;
};

/// A file that appears as a whole or not at all: written as `file`.part, synced and renamed by `publish`,
/// removed by the destructor otherwise. With a MakingLock held, a .part that is there is a dead process's.
class OutputFile {
 public:
  /// Throws: Error naming the file and the reason, as `write` and `publish` do: kResourceExhausted for a full
  /// disk.
  explicit OutputFile(const std::filesystem::path& file);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::uint64_t offset, std::string_view bytes);
  void publish();

 private:
  [[noreturn]] void fail() const;
  std::filesystem::path file_, part_;
  int descriptor_ = -1;
};

}  // namespace abl
