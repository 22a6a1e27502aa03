// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "images/masks/mask.h"

namespace abl::images {

/// Runs as they stand in an annotation file's `counts` list. Runs of no pixel may be among them.
/// Throws: Error{kInvalidArgument} when they are not, together, width × height pixels.
Mask mask_of_runs(std::span<const std::uint64_t> runs, int width, int height);

/// The text that pycocotools writes as `counts`: each run, from the fourth on less the one two before it, in
/// groups of five bits, lowest first, as the characters '0' … 'o'; the sixth bit says that another group
/// follows, and the last group's highest bit is the sign.
std::string compressed(const Mask& mask);

/// Throws: Error{kInvalidArgument} saying which character is wrong, for whatever text: one of another
/// character, one that breaks off, a run below zero or beyond 32 bits, runs that are not, together,
/// width × height pixels.
Mask mask_of_compressed(std::string_view text, int width, int height);

}  // namespace abl::images
