// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace abl {

/// ".4711.tmp": of the name beside a file that this process writes. No two processes have the same.
std::string unfinished_ending();
/// What stands before such an ending, of whichever process; nothing where a name has none.
std::optional<std::string_view> finished_name(std::string_view unfinished);

/// A file that appears as a whole or not at all: written under a name beside it, synced and renamed by
/// `publish`, removed by the destructor otherwise. What was at its place stays until then; a link is
/// followed. Throws (all): Error naming the file and the reason, kResourceExhausted for a full disk,
/// kInvalidArgument where a device, a pipe or a folder stands at its place.
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
  /// Makes its content that of another file, which must be written and synced: by a second name of it where
  /// the file system has links, otherwise by a copy.
  void take_content_of(const std::filesystem::path& written);
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
