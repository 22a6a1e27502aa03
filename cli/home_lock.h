// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace abl::cli {

/// Held by the one `ablate up` of a home folder for as long as it lives; the kernel gives it back when the
/// process is gone, however it went. A child of fork holds it too. Move-only.
class HomeLock {
 public:
  /// Nothing when another holds it. Throws: Error when the file cannot be opened.
  static std::optional<HomeLock> acquire(const std::filesystem::path& file);
  /// Whether some process holds it, without disturbing anyone who is about to acquire it.
  static bool is_held(const std::filesystem::path& file);

  HomeLock(HomeLock&& other) noexcept : fd_{other.fd_} { other.fd_ = -1; }
  HomeLock& operator=(HomeLock&&) = delete;
  ~HomeLock();

 private:
  explicit HomeLock(int fd) : fd_{fd} {}
  int fd_;
};

}  // namespace abl::cli
