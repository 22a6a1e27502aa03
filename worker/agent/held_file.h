// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace abl::agent {

/// A path comes from the network, or from a program, and may be exchanged while one looks. So the file is
/// taken hold of, by a descriptor that opens nothing (no pipe, no device), and then looked at.
class HeldFile {
 public:
  /// Throws: Error where this process lacks descriptors.
  explicit HeldFile(const std::filesystem::path& file);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  bool is_regular() const;
  std::uint64_t bytes() const;  ///< 0 of what is no file
  bool lies_under(const std::filesystem::path& root) const;
  /// By which this file is read, whatever has come to its place.
  std::filesystem::path path() const;

 private:
  int descriptor_ = -1;
  std::filesystem::path real_;
};

}  // namespace abl::agent
