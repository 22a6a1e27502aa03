// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace abl {

/// A file that appears as a whole or not at all: written under a name beside it, synced and renamed by
/// `publish`, removed by the destructor otherwise. What was at its place stays until then. Throws (all):
/// Error naming the file and the reason, kResourceExhausted for a full disk.
class NewFile {
 public:
  struct Options {
    /// Of the name beside it. One that is there already is a dead process's, and goes. XXXXXX at the end
    /// stand for letters that no other file has.
    std::string ending = ".part";
    mode_t mode = 0644;  ///< less what the umask takes, but with XXXXXX
  };
  NewFile(std::filesystem::path file, const Options& options);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::string_view bytes);
  void write(std::uint64_t offset, std::string_view bytes);
  void publish();
  /// The name beside it, for whoever writes it by other means.
  const std::filesystem::path& part() const { return part_; }

 private:
  [[noreturn]] void fail() const;
  std::filesystem::path file_, part_;
  std::uint64_t end_ = 0;  ///< of what was appended
  int descriptor_ = -1;
};

}  // namespace abl
