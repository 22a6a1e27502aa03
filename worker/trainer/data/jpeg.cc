// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/jpeg.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace abl::trainer {
namespace {

constexpr int kLargestSide = 32'768;  // a hostile header must not make us allocate gigabytes

struct Closer {
  void operator()(void* handle) const { tjDestroy(handle); }
};

/// libjpeg-turbo has no decoder from CMYK to RGB: Adobe writes the four inks inverted.
Image from_inks(const Image& inks) {
  Image rgb{inks.width, inks.height, std::vector<std::uint8_t>(inks.pixels.size() / 4 * 3)};
  for (std::size_t i = 0, o = 0; i < inks.pixels.size(); i += 4)
    for (int c = 0; c < 3; ++c)
      rgb.pixels[o++] = static_cast<std::uint8_t>(inks.pixels[i + c] * inks.pixels[i + 3] / 255);
  return rgb;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, int shorter_side) {
  thread_local std::unique_ptr<void, Closer> decoder;
  if (!decoder) decoder.reset(tjInitDecompress());
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto damaged = [&] {
    Error error{Code::kDataLoss, tjGetErrorStr2(decoder.get())};
    decoder.reset();  // after a broken header it would take the next picture for the rest of this one
    return error;
  };
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (bytes.empty()) throw Error{Code::kDataLoss, "the file is empty"};
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours) != 0)
    throw damaged();
  if (std::max(width, height) > kLargestSide)
    throw Error{Code::kDataLoss, fmt::format("it claims to be {}×{} pixels; at most {} a side are accepted",
                                             width, height, kLargestSide)};

  int count = 0;
  const tjscalingfactor* factors = tjGetScalingFactors(&count);
  tjscalingfactor best{1, 1};
  for (int i = 0; shorter_side > 0 && i < count; ++i)
    if (std::min(TJSCALED(width, factors[i]), TJSCALED(height, factors[i])) >= shorter_side &&
        factors[i].num * best.denom < best.num * factors[i].denom)
      best = factors[i];

  const bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
  Image image{TJSCALED(width, best), TJSCALED(height, best), {}};
  image.pixels.resize(std::size_t{1} * image.width * image.height * (inks ? 4 : 3));
  // TJFLAG_STOPONWARNING: a truncated file is a warning to libjpeg-turbo, and half a grey picture to us
  if (tjDecompress2(decoder.get(), data, bytes.size(), image.pixels.data(), image.width, 0, image.height,
                    inks ? TJPF_CMYK : TJPF_RGB, TJFLAG_STOPONWARNING) != 0)
    throw damaged();
  return inks ? from_inks(image) : image;
}

}  // namespace abl::trainer
