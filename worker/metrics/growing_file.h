// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace abl::metrics {

/// A file that another program writes while it is read: what has come since. It may be cut off and written
/// anew, or another one be put in its place; what has the same beginning goes on where reading was. Thread:
/// one.
class GrowingFile {
 public:
  /// `root`: the folder that the file must lie in, also where links lead.
  GrowingFile(std::filesystem::path file, std::filesystem::path root);
  ~GrowingFile();
  GrowingFile(GrowingFile&&) noexcept;
  GrowingFile& operator=(GrowingFile&&) = delete;

  struct Piece {
    std::string bytes;
    bool anew = false;  ///< they are the beginning: what was read before is no longer the file's
    bool at_end = true;
  };
  /// At most so many bytes. Where the file is not there, or cannot be read, none.
  /// Throws: Error where this process lacks descriptors or memory.
  Piece read(std::size_t most);

  const std::filesystem::path& path() const { return file_; }
  std::uint64_t offset() const { return offset_; }  ///< bytes read of the file as it is
  /// Why it cannot be read, or empty.
  const std::string& problem() const { return problem_; }

 private:
  bool open();
  bool goes_on(int descriptor, std::uint64_t size) const;
  bool is_replaced() const;
  void begin_anew();

  std::filesystem::path file_, root_;
  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  timespec changed_{};
  std::uint64_t offset_ = 0;
  std::string tail_;  ///< the last bytes that were read
  bool anew_ = false;
  std::string problem_;
};

/// The files below `root` that a path with `*` and `?` names, which do not stand for a slash; folders too.
/// At most 1,000, in order.
std::vector<std::filesystem::path> matching(const std::filesystem::path& root, const std::string& pattern);

}  // namespace abl::metrics
