// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace abl {

/// A whole file as memory. It must not be shortened while it is mapped (replace it by renaming another over
/// it): the system ends a program that reads beyond a file's end.
/// Thread: any.
class MappedFile {
 public:
  enum class Access {
    kRead,         ///< every process that maps it shares the system's one copy
    kCopyOnWrite,  ///< may be written to: page by page a copy of this process's own, the file stays as it is
  };

  /// Throws: Error naming the file and the reason; kInvalidArgument when it is no regular file.
  explicit MappedFile(const std::filesystem::path& file, Access access = Access::kRead);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string_view bytes() const { return {start_, size_}; }
  /// To be written to with kCopyOnWrite alone. Null for an empty file.
  char* start() const { return start_; }

 private:
  const std::filesystem::path path_;
  char* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace abl
