// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "images/masks/mask.h"

namespace abl::images {

/// x, y, x, y, …: the corners of a polygon, at least three. Units: pixels, as Box.
using Polygon = std::vector<double>;

/// The pixels in a polygon, exactly the ones that pycocotools takes: its boundary is walked in fifths of a
/// pixel, and where that crosses the middle of a column the column changes from outside to inside or back.
/// Source: pycocotools 2.0.11, common/maskApi, rleFrPoly.
/// Throws: Error{kInvalidArgument} for fewer than three corners, an odd count of coordinates, one that is no
/// finite number or is more than kFarthestCorner away, or a boundary of more than kLongestBoundary pixels.
Mask mask_of_polygon(std::span<const double> polygon, int width, int height);
inline constexpr double kFarthestCorner = 1e6;
inline constexpr std::int64_t kLongestBoundary = 20'000'000;

/// Throws: as mask_of_polygon, for corners that it cannot take, whatever the picture.
void expect_polygon(std::span<const double> polygon);

/// The pixels that are in any of them. No polygon: nothing.
Mask mask_of_polygons(std::span<const Polygon> polygons, int width, int height);

/// The smallest box around all corners; of no polygon an empty one.
Box bounds(std::span<const Polygon> polygons);

}  // namespace abl::images
