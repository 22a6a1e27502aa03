// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "images/annotated.h"

namespace abl::images {

/// A PNG file of a non-empty image, 8 bits for each colour. Equal images give equal bytes. Thread: any.
/// Throws: Error{kInvalidArgument} with libpng's reason.
std::string encode_png(const Image& image);
/// A file whose values are the labels: grey of 8 bits.
std::string encode_png(const LabelMap& labels);

}  // namespace abl::images
