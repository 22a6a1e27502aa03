// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "images/image.h"

namespace abl::images {

using Words = std::vector<std::string>;

/// What the operation or policy of this name in references.py makes of an image; arguments as text, a
/// policy's seed last. Throws: std::out_of_range for a name or argument that is not there.
Image apply_named(const std::string& operation, const Image& image, const Words& arguments);

}  // namespace abl::images
