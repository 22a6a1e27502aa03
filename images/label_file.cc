// SPDX-License-Identifier: Apache-2.0
#include "images/label_file.h"

#include "base/error.h"
#include "images/image_file.h"
#include "images/picture_reader.h"

namespace abl::images {

LabelMap read_labels(std::string_view file) {
  const EncodedImage header = image_in(file);
  if (header.coding != EncodedImage::Coding::kPng)
    throw Error{Code::kDataLoss, "not a PNG file; expected a label image"};
  const auto reader = open_png(file, PngValues::kIndices);
  const Image image = reader->decode({.width = header.width, .height = header.height});
  LabelMap map = labelled(image.width, image.height, 0);
  for (std::size_t i = 0; i < map.labels.size(); ++i) map.labels[i] = image.pixels[3 * i];
  return map;
}

}  // namespace abl::images
