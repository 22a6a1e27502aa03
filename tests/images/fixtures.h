// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/images/named_operation.h"

namespace abl::images {

/// What a reference makes of a picture.
struct ImageCase {
  std::string operation, picture;
  Words arguments;
  int bound = 0;  ///< largest difference of a byte
  Image expected;
};

/// What a reference draws.
struct NumberCase {
  std::string policy;
  Words arguments;
  std::vector<double> expected;
};

/// The file that make_fixtures.py describes and writes.
struct Fixtures {
  std::map<std::string, Image> pictures;
  std::vector<ImageCase> images;
  std::vector<NumberCase> numbers;
};

/// Reads it once. Throws: std::runtime_error for a file that is not one, or breaks off.
const Fixtures& fixtures();

}  // namespace abl::images
