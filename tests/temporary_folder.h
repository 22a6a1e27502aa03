// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace abl {

/// A folder that goes with the test, open to its user alone.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (above() / "ablate-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a process that is just ending may still write there
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  /// To be called before a death test of the style "threadsafe": that begins the test anew in a process that
  /// ends without destructors. Its folders are made in this one, and go with it.
  void take_in_those_of_death_tests() const {
    ::setenv(kDeathTests, (std::to_string(::getpid()) + ' ' + path_.string()).c_str(), 1);
  }

 private:
  static constexpr const char* kDeathTests = "ABLATE_DEATH_TEST_FOLDER";  // "PID PATH"

  static std::filesystem::path above() {
    if (const char* given = std::getenv(kDeathTests)) {
      char* path = nullptr;
      if (std::strtol(given, &path, 10) != ::getpid() && *path == ' ') return path + 1;
    }
    return std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

}  // namespace abl
