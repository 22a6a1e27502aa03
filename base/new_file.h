// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace abl {

/// A file that appears as a whole or not at all: written as `file`.part, synced and renamed by `publish`,
/// removed by the destructor otherwise. A .part that is there is a dead process's: whoever makes a file has a
/// lock.
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
