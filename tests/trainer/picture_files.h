// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <turbojpeg.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace abl::trainer {

/// A folder that is gone when the test is over.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ablate-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A JPEG of one colour.
inline std::string jpeg_of(int width, int height, std::array<std::uint8_t, 3> colour) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < width * height; ++i) pixels.insert(pixels.end(), colour.begin(), colour.end());
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  tjhandle encoder = tjInitCompress();
  tjCompress2(encoder, pixels.data(), width, 0, height, TJPF_RGB, &bytes, &size, TJSAMP_444, 95, 0);
  std::string text{reinterpret_cast<char*>(bytes), size};
  tjFree(bytes);
  tjDestroy(encoder);
  return text;
}

inline void write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream{file, std::ios::binary} << bytes;
}

}  // namespace abl::trainer
