// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "images/annotated.h"

namespace abl::images {

// What is done to a picture is done to its boxes, masks and labels too.

/// Left becomes right.
void flip(Annotated& picture);

/// To another size: the image as Pillow's bilinear `resize` (antialiased), masks and labels by the nearest
/// pixel (masks/mask.h), boxes and areas in proportion. `width`, `height`: at least 1.
Annotated resized(const Annotated& picture, int width, int height);

/// The part of `region`, which may reach outside: there the image has `fill`, and pixels have no label.
///
/// A box that lies in the region keeps its size. One that is cut becomes the box of what is left of its mask,
/// or, without a mask, of the part that is left of it; its area is that of what is left. A thing of which
/// nothing is left is dropped. Source: detectron2 0.6, data/transforms: boxes of cropped masks.
Annotated cropped(const Annotated& picture, const Rectangle& region, Colour fill = {});

/// A frame at the right and below, to that size; nothing where it is as large already. What is added has no
/// label.
Annotated padded(const Annotated& picture, int width, int height, Colour fill = {});

/// Labels by the nearest pixel, as masks are resized.
LabelMap resized(const LabelMap& labels, int width, int height);
/// Outside of the map pixels have no label.
LabelMap cropped(const LabelMap& labels, const Rectangle& region);

/// Width and height.
struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

}  // namespace abl::images
