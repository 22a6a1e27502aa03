// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "images/annotated.h"

namespace abl::images {

/// A PNG file whose values are labels: grey of at most 8 bits, or a palette's indices, whatever colours it
/// shows them in. Throws: Error{kDataLoss} with the reason where it is damaged, none, one of colours, or of
/// more pixels than `image_in` accepts; Error{kResourceExhausted} where memory is missing.
LabelMap read_labels(std::string_view file);

}  // namespace abl::images
