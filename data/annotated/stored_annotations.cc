// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/stored_annotations.h"

#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "data/stored_source.h"

namespace abl::data {

images::EncodedImage StoredAnnotations::open_as_told(std::uint32_t index) const {
  images::EncodedImage encoded = open(index);
  const Extent told = extent(index);
  if (encoded.width != told.width || encoded.height != told.height)
    throw Error{Code::kDataLoss, fmt::format("image size {}×{} does not match its annotation's {}×{}",
                                             encoded.width, encoded.height, told.width, told.height)};
  return encoded;
}

images::Annotated StoredAnnotations::read(std::uint32_t index) const {
  const images::EncodedImage encoded = open_as_told(index);
  const Truths known = truths(index);
  return {.image = decode_image(encoded),
          .instances = instances_of(known, encoded.width, encoded.height),
          .labels = labels_of(known, encoded.width, encoded.height, classes_)};
}

std::optional<images::Annotated> StoredAnnotations::load(std::uint32_t index) const {
  try {
    return read(index);
  } catch (const Error& error) {
    if (error.code() != Code::kDataLoss) throw;  // it could not be read: nothing is said of its content
    const std::string what = fmt::format("{}: {}", name(index), error.what());
    if (damaged_ == config::Damaged::kFail)
      throw Error{Code::kDataLoss, "unreadable image " + what + " (data.damaged: skip would leave it out)"};
    if (const std::scoped_lock lock{mutex_}; named_.insert(index).second)
      std::cerr << "skipped unreadable image " + what + "\n";
    return std::nullopt;
  }
}

}  // namespace abl::data
