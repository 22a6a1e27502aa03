// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/stored_source.h"

#include <fmt/format.h>

#include <cstring>
#include <iostream>

#include "base/error.h"
#include "worker/trainer/data/jpeg.h"

namespace abl::trainer {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{512} << 20;  // of decoded pixels, each split

/// Pixels need no decoding: the region at full scale.
RegionView cut_out(const EncodedImage& encoded, const Rectangle& region) {
  if (region.left < 0 || region.top < 0 || region.width < 1 || region.height < 1 ||
      region.width > encoded.width - region.left || region.height > encoded.height - region.top)
    throw Error{Code::kInvalidArgument,
                fmt::format("region {}×{} at ({}, {}) does not lie in an image of {}×{} pixels", region.width,
                            region.height, region.left, region.top, encoded.width, encoded.height)};
  const std::size_t bytes = std::size_t{3} * region.width;
  Image image{region.width, region.height, std::vector<std::uint8_t>(bytes * region.height)};
  for (int y = 0; y < region.height; ++y)
    std::memcpy(&image.pixels[bytes * y],
                encoded.bytes.data() +
                    std::size_t{3} * (std::size_t{1} * (region.top + y) * encoded.width + region.left),
                bytes);
  return {.image = std::move(image),
          .width = static_cast<double>(region.width),
          .height = static_cast<double>(region.height)};
}

}  // namespace

RegionView decode_region(const EncodedImage& encoded, const ChooseRegion& choose) {
  RegionView view;
  if (encoded.coding == EncodedImage::Coding::kPixels) {
    view = cut_out(encoded, choose(encoded.width, encoded.height).region);
  } else {
    JpegReader reader{encoded.bytes};
    view = reader.decode(choose(reader.width(), reader.height()));
  }
  view.label = encoded.label;
  return view;
}

Image decode_image(const EncodedImage& encoded, int shorter_side) {
  if (encoded.coding == EncodedImage::Coding::kJpeg) return decode_jpeg(encoded.bytes, shorter_side);
  return {encoded.width, encoded.height, {encoded.bytes.begin(), encoded.bytes.end()}};
}

StoredSource::StoredSource(const config::DataConfig& data, std::size_t size)
    : skip_damaged_{data.damaged == "skip"}, shorter_side_{2 * data.image_size}, decoded_(size) {}

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

std::optional<Sample> StoredSource::load(std::uint32_t index) const {
  if (const auto kept = decoded_.at(index).load()) return Sample{*kept, label(index)};
  return or_skip(index, [&] {
    const EncodedImage encoded = open(index);
    Image image = decode_image(encoded, shorter_side_);
    if (encoded.coding == EncodedImage::Coding::kJpeg && cached_ + image.pixels.size() <= kCacheBytes) {
      cached_ += image.pixels.size();
      decoded_[index].store(std::make_shared<const Image>(image));
    }
    return Sample{std::move(image), encoded.label};
  });
}

std::optional<RegionView> StoredSource::view(std::uint32_t index, const ChooseRegion& choose) const {
  return or_skip(index, [&] { return decode_region(open(index), choose); });
}

}  // namespace abl::trainer
