// SPDX-License-Identifier: Apache-2.0
#include "data/stored_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "images/image_file.h"

namespace abl::data {
namespace {

// Decoded images that a split may keep in memory, each in an equal share: all of them are kept, or the ones
// that are small. So neither the memory nor what is decoded again depends on the order of reading.
constexpr std::size_t kCacheBytes = std::size_t{512} << 20;
constexpr std::size_t kLargestKept = std::size_t{3} * 256 * 256;  // larger ones are worth decoding in part

/// Pixels need no decoding: the region at full scale.
images::DecodedRegion cut_out(const images::EncodedImage& encoded, const images::Rectangle& region) {
  images::expect_inside(region, encoded.width, encoded.height);
  const std::size_t bytes = std::size_t{3} * region.width;
  images::Image image{region.width, region.height, std::vector<std::uint8_t>(bytes * region.height)};
  for (int y = 0; y < region.height; ++y)
    std::memcpy(&image.pixels[bytes * y],
                encoded.bytes.data() +
                    std::size_t{3} * (std::size_t{1} * (region.top + y) * encoded.width + region.left),
                bytes);
  return {.image = std::move(image),
          .region = region,
          .width = static_cast<double>(region.width),
          .height = static_cast<double>(region.height)};
}

}  // namespace

images::DecodedRegion decode_region(const images::EncodedImage& encoded, const images::ChooseRegion& choose) {
  images::DecodedRegion decoded;
  if (encoded.coding == images::EncodedImage::Coding::kPixels) {
    decoded = cut_out(encoded, choose(encoded.width, encoded.height).region);
  } else {
    decoded = images::decode_file(encoded.coding, encoded.bytes, choose);
  }
  decoded.label = encoded.label;
  return decoded;
}

images::Image decode_image(const images::EncodedImage& encoded) {
  if (encoded.coding == images::EncodedImage::Coding::kPixels)
    return {encoded.width, encoded.height, {encoded.bytes.begin(), encoded.bytes.end()}};
  return images::decode_file(encoded.coding, encoded.bytes,
                             [](int width, int height) {
                               return images::Wanted{.region = {.width = width, .height = height}};
                             })
      .image;
}

StoredSource::StoredSource(const config::DataConfig& data, std::size_t size)
    : skip_damaged_{data.damaged == config::Damaged::kSkip},
      kept_bytes_{std::min(kLargestKept, kCacheBytes / std::max<std::size_t>(1, size))},
      decoded_(size) {}

template <class Read>
auto StoredSource::or_skip(std::uint32_t index, const Read& read) const -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != Code::kDataLoss) throw;  // the file could not be read: nothing is said of its content
    const std::string what = fmt::format("{}: {}", name(index), error.what());
    if (!skip_damaged_)
      throw Error{Code::kDataLoss, "unreadable image " + what + " (data.damaged: skip would leave it out)"};
    if (const std::scoped_lock lock{mutex_}; named_.insert(index).second)
      std::cerr << "skipped unreadable image " + what + "\n";
    return std::nullopt;
  }
}

images::DecodedRegion StoredSource::read(std::uint32_t index, const images::ChooseRegion& choose) const {
  auto kept = decoded_.at(index).load();
  if (!kept) {
    const images::EncodedImage encoded = open(index);
    const bool small = std::size_t{3} * encoded.width * encoded.height <= kept_bytes_;
    if (encoded.coding == images::EncodedImage::Coding::kPixels || !small)
      return decode_region(encoded, choose);
    kept = std::make_shared<const images::Image>(decode_image(encoded));
    decoded_[index].store(kept);
  }
  return decode_region({.coding = images::EncodedImage::Coding::kPixels,
                        .bytes = {reinterpret_cast<const char*>(kept->pixels.data()), kept->pixels.size()},
                        .owner = kept,
                        .width = kept->width,
                        .height = kept->height,
                        .label = label(index)},
                       choose);
}

std::optional<images::DecodedRegion> StoredSource::decode(std::uint32_t index,
                                                          const images::ChooseRegion& choose) const {
  return or_skip(index, [&] { return read(index, choose); });
}

images::EncodedImage owning(std::string bytes) {
  auto held = std::make_shared<const std::string>(std::move(bytes));
  images::EncodedImage image = images::image_in(*held);
  image.owner = std::move(held);
  return image;
}

}  // namespace abl::data
