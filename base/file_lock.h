// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace abl {

/// A lock on a file, made where it is not there. The kernel gives it back when the process is gone, however
/// it went. Move-only.
class FileLock {
 public:
  /// Those of one kind do not see the other's, so a file keeps the kind that older programs lock it by.
  enum class Kind {
    kFlock,
    kOpenFile,  ///< a child of fork holds it too; `is_held` tells without taking it
  };

  /// Nothing when another has it.
  /// Throws: Error when the file cannot be opened or locked.
  static std::optional<FileLock> try_lock(const std::filesystem::path& file, Kind kind = Kind::kFlock);
  /// Waits for it, as kFlock.
  /// Throws: Error when the file cannot be written or locked.
  static FileLock wait(const std::filesystem::path& file, mode_t mode);
  /// Whether somebody has it as kOpenFile, without disturbing anyone who is about to take it.
  static bool is_held(const std::filesystem::path& file);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Whether the file was not there before.
  bool made_file() const { return made_; }
  /// Whether the file goes with the lock. Who waits for it, or takes it then, gets a new one.
  void remove_after(bool remove) { remove_ = remove; }
  /// Writes this process's number into the file, for the message of whoever does not get the lock.
  void sign() const;

 private:
  FileLock(std::filesystem::path file, mode_t mode, const char* failure);
  /// Returns: whether it was got; otherwise errno says why not.
  bool lock(Kind kind, bool wait) const;
  bool in_place() const;

  std::filesystem::path file_;
  int descriptor_ = -1;
  bool made_ = false, remove_ = false;
};

}  // namespace abl
