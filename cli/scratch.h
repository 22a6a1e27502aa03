// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace abl::cli {

/// A folder that goes with the object.
class Scratch {
 public:
  Scratch() : name_{(std::filesystem::temp_directory_path() / "ablate-XXXXXX").string()} {
    if (!::mkdtemp(name_.data())) throw system_error("cannot make " + name_, errno);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path path() const { return name_; }

 private:
  std::string name_;
};

}  // namespace abl::cli
