// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "images/box.h"
#include "images/image.h"
#include "images/masks/mask.h"

namespace abl::images {

/// One thing in a picture.
struct Instance {
  int category = 0;  ///< from 0
  Box box;
  Mask mask;           ///< as large as the picture; of no side where nothing is known of it
  double area = 0;     ///< as its annotation has it. Units: pixels
  bool crowd = false;  ///< many of its category, which were not told apart

  bool has_mask() const { return mask.width > 0; }
};

/// A class for each pixel. Shape: [height, width], rows from the top. Empty where nothing is known.
struct LabelMap {
  static constexpr std::uint8_t kIgnored = 255;  ///< counts neither in a loss nor in a score

  int width = 0, height = 0;
  std::vector<std::uint8_t> labels;

  bool empty() const { return labels.empty(); }
  std::uint8_t* row(int y) {
    return labels.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width);
  }
  const std::uint8_t* row(int y) const {
    return labels.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width);
  }
  bool operator==(const LabelMap&) const = default;
};

/// A map whose pixels all have one label.
inline LabelMap labelled(int width, int height, std::uint8_t label) {
  return {
      width, height,
      std::vector<std::uint8_t>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), label)};
}

/// A picture with what is to be found in it. What is known of it is of its size.
struct Annotated {
  Image image;
  std::vector<Instance> instances;
  LabelMap labels;
};

}  // namespace abl::images
