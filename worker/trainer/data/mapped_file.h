// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace abl::trainer {

/// A file as memory, read-only: every process that maps it shares the system's one copy. It must not be
/// shortened while it is mapped (replace it by renaming another over it): the system ends a program that
/// reads beyond a file's end. Thread: any.
class MappedFile {
 public:
  /// Throws: Error naming the file and the reason.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::string_view bytes_;
};

}  // namespace abl::trainer
