// SPDX-License-Identifier: Apache-2.0
#include "images/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "images/jpeg.h"
#include "images/picture_reader.h"

namespace abl::images {
namespace {

using Coding = EncodedImage::Coding;

// a hostile header must not make us allocate gigabytes
constexpr int kLargestSide = 32'768;
constexpr std::int64_t kMostPixels = 178'956'970;  // where Pillow speaks of a decompression bomb: 0.5 GiB

std::string first_bytes(std::string_view file) {
  std::string text;
  for (const unsigned char byte : file.substr(0, 4))
    text += fmt::format("{}0x{:02x}", text.empty() ? "" : " ", byte);
  return text;
}

/// `use(reader)` with the reader of that coding, once the header is known to be of a size that is accepted.
template <class Use>
auto with_reader(Coding coding, std::string_view file, const Use& use) {
  const auto checked = [&](auto& reader) {
    const int width = reader.width(), height = reader.height();
    if (std::max(width, height) > kLargestSide || std::int64_t{1} * width * height > kMostPixels)
      throw Error{Code::kDataLoss,
                  fmt::format("it claims to be {}×{} pixels; at most {} a side and {} in all are accepted",
                              width, height, kLargestSide, kMostPixels)};
    return use(reader);
  };
  if (coding != Coding::kJpeg) {
    const auto reader = coding == Coding::kPng ? open_png(file) : open_webp(file);
    return checked(*reader);
  }
  JpegReader reader{file};
  return checked(reader);
}

DecodedRegion decode(JpegReader& reader, const Wanted& wanted) { return reader.decode(wanted); }

DecodedRegion decode(PictureReader& reader, const Wanted& wanted) {
  const Rectangle& region = wanted.region;
  expect_inside(region, reader.width(), reader.height());
  return {.image = reader.decode(region),
          .region = region,
          .width = static_cast<double>(region.width),
          .height = static_cast<double>(region.height)};
}

}  // namespace

std::optional<Coding> coding_of(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return Coding::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return Coding::kPng;
  if (bytes.starts_with("RIFF") && bytes.substr(std::min<std::size_t>(8, bytes.size())).starts_with("WEBP"))
    return Coding::kWebp;
  return std::nullopt;
}

bool has_image_name(std::string_view name) {
  const auto ends_with = [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::ranges::equal(name.substr(name.size() - ending.size()), ending,
                              [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
  };
  return std::ranges::any_of(std::array{".jpg", ".jpeg", ".png", ".webp"}, ends_with);
}

EncodedImage image_in(std::string_view file) {
  if (file.empty()) throw Error{Code::kDataLoss, "the file is empty"};
  const auto coding = coding_of(file);
  if (!coding)
    throw Error{Code::kDataLoss,
                fmt::format("not a JPEG, PNG or WebP file: it starts with {}", first_bytes(file))};
  return with_reader(*coding, file, [&](auto& reader) {
    return EncodedImage{
        .coding = *coding, .bytes = file, .owner = {}, .width = reader.width(), .height = reader.height()};
  });
}

DecodedRegion decode_file(Coding coding, std::string_view file, const ChooseRegion& choose) {
  return with_reader(coding, file,
                     [&](auto& reader) { return decode(reader, choose(reader.width(), reader.height())); });
}

}  // namespace abl::images
