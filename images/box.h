// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::images {

/// A rectangle between pixels, as COCO writes it: pixel (0, 0) covers 0 … 1 in both directions.
/// Units: pixels, not only whole ones.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
  double area() const { return width * height; }
  bool empty() const { return !(width > 0 && height > 0); }
  bool operator==(const Box&) const = default;
};

}  // namespace abl::images
