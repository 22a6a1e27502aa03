// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "images/masks/mask.h"

namespace abl::images {

enum class Merge { kUnion, kIntersection };

/// One mask of several. Throws: Error{kInvalidArgument} for none, or masks of different pictures.
Mask merged(std::span<const Mask> masks, Merge how);

/// How many pixels are set in both. Throws: Error{kInvalidArgument} for masks of different pictures.
std::uint64_t common_pixels(const Mask& a, const Mask& b);

/// What a region is compared with: a thing, or a crowd of things, of which a part is enough.
enum class Against { kThing, kCrowd };

/// Intersection over union, of a crowd intersection over what was found. 0 where nothing is in common.
/// Source: pycocotools 2.0.11, common/maskApi, bbIou and rleIou.
double overlap(const Box& found, const Box& truth, Against against);
/// `found_box`, `truth_box`: bounds of the masks, to see at once where nothing is in common.
double overlap(const Mask& found, const Box& found_box, const Mask& truth, const Box& truth_box,
               Against against);
double overlap(const Mask& found, const Mask& truth, Against against);

}  // namespace abl::images
