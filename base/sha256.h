// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace abl {

/// SHA-256 (FIPS 180-4) of what was given to `update`. No packaged library without further dependencies has
/// it, and the trainer must build on a machine that has only a compiler and PyTorch.
class Sha256 {
 public:
  Sha256& update(std::string_view bytes);
  /// Lower-case hexadecimal, 64 characters. Ends the digest: use a new object for the next one.
  std::string hex();

 private:
  void block(const unsigned char* data);
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::uint64_t length_ = 0;
};

std::string sha256_hex(std::string_view bytes);
/// Throws: Error when the file cannot be read.
std::string sha256_file(const std::filesystem::path& file);

}  // namespace abl
