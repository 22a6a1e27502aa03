// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace abl {

/// What a start has made; it goes again, last first, unless the start succeeds.
class MadePaths {
 public:
  MadePaths() = default;
  ~MadePaths() {
    std::error_code ignored;
    for (auto path = paths_.rbegin(); path != paths_.rend(); ++path) std::filesystem::remove(*path, ignored);
  }
  MadePaths(const MadePaths&) = delete;
  MadePaths& operator=(const MadePaths&) = delete;

  void add(const std::vector<std::filesystem::path>& paths) {
    paths_.insert(paths_.end(), paths.begin(), paths.end());
  }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

}  // namespace abl
