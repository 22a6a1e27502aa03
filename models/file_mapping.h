// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace abl::models {

/// A whole file in memory, copied page by page when written to. It must not be truncated meanwhile.
class FileMapping {
 public:
  /// Throws: Error{kNotFound, …} when it cannot be opened, Error{kInvalidArgument} when it is no regular
  /// file.
  explicit FileMapping(const std::filesystem::path& file);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  char* start() const { return start_; }
  std::string_view bytes() const { return {start_, size_}; }

 private:
  char* start_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace abl::models
