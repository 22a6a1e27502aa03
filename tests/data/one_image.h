// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "data/stored_source.h"

namespace abl::data {

/// A data set of one image: pixels, or a JPEG file.
class OneImage final : public ImageSource {
 public:
  explicit OneImage(images::Image image) : image_{std::move(image)} {}
  explicit OneImage(std::string jpeg) : jpeg_{std::move(jpeg)} {}
  std::uint32_t size() const override { return 1; }
  int label(std::uint32_t) const override { return 0; }
  std::string name(std::uint32_t) const override { return "one image"; }
  images::EncodedImage open(std::uint32_t) const override {
    if (!jpeg_.empty()) return {.bytes = jpeg_};
    return {.coding = images::EncodedImage::Coding::kPixels,
            .bytes = {reinterpret_cast<const char*>(image_.pixels.data()), image_.pixels.size()},
            .width = image_.width,
            .height = image_.height};
  }
  std::optional<images::DecodedRegion> decode(std::uint32_t index,
                                              const images::ChooseRegion& choose) const override {
    return decode_region(open(index), choose);
  }

 private:
  const images::Image image_;
  const std::string jpeg_;
};

}  // namespace abl::data
