// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/file.h"

namespace abl {

/// Compares with the kept file tests/FOLDER/golden/NAME. With ABLATE_WRITE_GOLDEN set the file is written
/// instead, to be read before it is committed.
inline void expect_golden(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string file = std::string{ABLATE_SOURCE_DIR} + "/tests/" + folder + "/golden/" + name;
  if (std::getenv("ABLATE_WRITE_GOLDEN")) {
    write_file_atomically(file, text);
    FAIL() << "wrote " << file;
  }
  EXPECT_EQ(read_file(file), text) << "differs from " << file;
}

}  // namespace abl
