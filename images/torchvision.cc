// SPDX-License-Identifier: Apache-2.0
#include "images/torchvision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <utility>

#include "base/error.h"
#include "images/pillow_enhance.h"
#include "images/pillow_ops.h"
#include "images/timm_rand_augment.h"

namespace abl::images {
namespace {

std::optional<double> factor(double strength, RandomStream& random) {
  if (strength <= 0) return std::nullopt;
  return random.uniform(std::max(0.0, 1 - strength), 1 + strength);
}

}  // namespace

void colour_jitter(Image& image, const ColourJitter& jitter, RandomStream& random) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const auto bright = factor(jitter.brightness, random), contrasted = factor(jitter.contrast, random),
             saturated = factor(jitter.saturation, random);
  const double turn = jitter.hue > 0 ? random.uniform(-jitter.hue, jitter.hue) : 0;
  for (const int part : order) {
    if (part == 0 && bright) brightness(image, static_cast<float>(*bright));
    if (part == 1 && contrasted) contrast(image, static_cast<float>(*contrasted));
    if (part == 2 && saturated) saturation(image, static_cast<float>(*saturated));
    if (part == 3 && jitter.hue > 0) hue(image, turn);
  }
}

void copy_overlap(const Image& image, int left, int top, Image& out) {
  const int from = std::max(0, left), to = std::min(image.width, left + out.width);
  for (int y = 0; y < out.height && from < to; ++y)
    if (const int row = top + y; row >= 0 && row < image.height)
      std::memcpy(out.row(y) + std::ptrdiff_t{3} * (from - left), image.row(row) + std::ptrdiff_t{3} * from,
                  std::size_t{3} * (to - from));
}

Image crop(const Image& image, int left, int top, int width, int height) {
  Image out = black(width, height);
  copy_overlap(image, left, top, out);
  return out;
}

Image pad(const Image& image, int left, int top, int right, int bottom, Colour fill) {
  Image out = filled(image.width + left + right, image.height + top + bottom, fill);
  copy_overlap(image, -left, -top, out);
  return out;
}

Image pad_reflected(const Image& image, int left, int top, int right, int bottom) {
  if (std::max(left, right) >= image.width || std::max(top, bottom) >= image.height)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("pad: a reflected frame of {}, {}, {}, {} pixels (left, top, right, bottom) needs a "
                    "larger image than {}×{}",
                    left, top, right, bottom, image.width, image.height)};
  Image out = black(image.width + left + right, image.height + top + bottom);
  for (int y = 0; y < out.height; ++y) {
    const std::uint8_t* from = image.row(reflected(y - top, image.height));
    std::uint8_t* to = out.row(y);
    std::memcpy(to + std::ptrdiff_t{3} * left, from, image.row_bytes());
    for (int x = -left; x < 0; ++x)
      copy_pixel(from + std::ptrdiff_t{3} * reflected(x, image.width), to + std::ptrdiff_t{3} * (left + x));
    for (int x = image.width; x < image.width + right; ++x)
      copy_pixel(from + std::ptrdiff_t{3} * reflected(x, image.width), to + std::ptrdiff_t{3} * (left + x));
  }
  return out;
}

void flip(Image& image) {
  std::vector<std::uint8_t> mirrored(image.row_bytes() + 1);
  for (int y = 0; y < image.height; ++y) {
    std::uint8_t* row = image.row(y);
    std::memcpy(mirrored.data(), row, image.row_bytes());
    // four bytes at a time: the fourth belongs to the next pixel, which is written next
    const std::uint8_t* from = mirrored.data() + std::ptrdiff_t{3} * (image.width - 1);
    for (int x = 0; x + 1 < image.width; ++x)
      std::memcpy(row + std::ptrdiff_t{3} * x, from - std::ptrdiff_t{3} * x, 4);
    copy_pixel(mirrored.data(), row + std::ptrdiff_t{3} * (image.width - 1));
  }
}

namespace {

/// Weight 0 is the middle's, weight k that of the two pixels k away; those that are too small to matter to a
/// byte are left out, as denormal numbers are slow.
std::vector<float> half_kernel(int kernel_size, double sigma) {
  std::vector<double> exact;
  double sum = 0;
  for (int k = 0; k <= kernel_size / 2; ++k) {
    exact.push_back(std::exp(-0.5 * (k / sigma) * (k / sigma)));
    sum += (k == 0 ? 1 : 2) * exact.back();
  }
  std::vector<float> weights;
  for (const double weight : exact)
    if (weight / sum > 1e-9) weights.push_back(static_cast<float>(weight / sum));
  return weights;
}

void check(const Image& image, int kernel_size, double sigma) {
  if (kernel_size < 1 || kernel_size % 2 == 0 || !(sigma > 0))
    throw Error{
        Code::kInvalidArgument,
        fmt::format("Gaussian blur: kernel {} and sigma {}; expected an odd kernel and a sigma above 0",
                    kernel_size, sigma)};
  if (std::min(image.width, image.height) <= kernel_size / 2)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("Gaussian blur: an image of {}×{} pixels is too small for a kernel of {}: it cannot be "
                    "reflected so far",
                    image.width, image.height, kernel_size)};
}

}  // namespace

Image gaussian_blur(const Image& image, int kernel_size, double sigma) {
  check(image, kernel_size, sigma);
  const auto weights = half_kernel(kernel_size, sigma);
  const int reach = static_cast<int>(weights.size()) - 1;
  const std::size_t bytes = image.row_bytes(), margin = std::size_t{3} * reach;
  Image out = black(image.width, image.height);
  std::vector<float> padded(bytes + 2 * margin), sums(bytes);
  float* middle = padded.data() + margin;
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.row(y);
    for (std::size_t i = 0; i < bytes; ++i) middle[i] = weights[0] * static_cast<float>(row[i]);
    for (int k = 1; k <= reach; ++k) {
      const std::uint8_t* above = image.row(reflected(y - k, image.height));
      const std::uint8_t* below = image.row(reflected(y + k, image.height));
      for (std::size_t i = 0; i < bytes; ++i)
        middle[i] += weights[k] * static_cast<float>(above[i] + below[i]);
    }
    for (std::ptrdiff_t x = 1; x <= reach; ++x)
      for (std::ptrdiff_t c = 0; c < 3; ++c) {
        middle[c - 3 * x] = middle[c + 3 * x];
        middle[3 * (image.width - 1 + x) + c] = middle[3 * (image.width - 1 - x) + c];
      }
    for (std::size_t i = 0; i < bytes; ++i) sums[i] = 0.5F + weights[0] * middle[i];  // rounds, below
    for (int k = 1; k <= reach; ++k) {
      const float *left = middle - std::ptrdiff_t{3} * k, *right = middle + std::ptrdiff_t{3} * k;
      for (std::size_t i = 0; i < bytes; ++i) sums[i] += weights[k] * (left[i] + right[i]);
    }
    std::uint8_t* to = out.row(y);
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(static_cast<int>(sums[i]));
  }
  return out;
}

namespace {

int below(int bound, RandomStream& random) {
  return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
}
int to_even(double value) { return static_cast<int>(std::nearbyint(value)); }  // halves to even, as Python's

}  // namespace

Rectangle draw_resized_crop(int width, int height, const ResizedCrop& ranges, RandomStream& random) {
  const double area = 1.0 * width * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(ranges.area_low, ranges.area_high);
    const double aspect = std::exp(random.uniform(std::log(ranges.aspect_low), std::log(ranges.aspect_high)));
    const int w = to_even(std::sqrt(target * aspect)), h = to_even(std::sqrt(target / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int left = below(width - w + 1, random), top = below(height - h + 1, random);
    return {left, top, w, h};
  }
  const double aspect = 1.0 * width / height;
  const int w = aspect > ranges.aspect_high ? to_even(height * ranges.aspect_high) : width;
  const int h = aspect < ranges.aspect_low ? to_even(width / ranges.aspect_low) : height;
  return {(width - w) / 2, (height - h) / 2, w, h};
}

namespace {

constexpr int kStrengths = 31;

/// The strength of number `i` between two. In float32, as `linspace` counts: from the nearer end.
double strength(float low, float high, int i) {
  const float step = (high - low) / static_cast<float>(kStrengths - 1);
  const float from_low = step * static_cast<float>(i),
              from_high = step * static_cast<float>(kStrengths - 1 - i);
  return i < kStrengths / 2 ? low + from_low : high - from_high;
}

constexpr double kWholeSide = 0.99, kMostShift = 32,
                 kMostDegrees = 135;  // of shears and factors, in pixels, turned

/// An angle as torchvision has it, which counts in degrees in between.
double by_degrees(double angle) { return angle * (180 / std::numbers::pi) * (std::numbers::pi / 180); }

Image sheared(const Image& image, double across, double down, const Sampling& sampling) {
  const double x = by_degrees(std::atan(across)), y = by_degrees(std::atan(down));
  const double a = std::cos(-y) / std::cos(y), b = -std::cos(-y) * std::tan(x) / std::cos(y);
  const double c = std::sin(-y) / std::cos(y), d = -std::sin(-y) * std::tan(x) / std::cos(y) + 1;
  return affine(image, {d, -b, 0, -c, a, 0}, sampling);
}

}  // namespace

void trivial_augment(Image& image, Interpolation interpolation, RandomStream& random) {
  enum Operation {
    kIdentity,
    kShearX,
    kShearY,
    kTranslateX,
    kTranslateY,
    kRotate,
    kBrightness,
    kColour,
    kContrast,
    kSharpness,
    kPosterise,
    kSolarise,
    kAutoContrast,
    kEqualise,
    kOperations
  };
  const auto operation = static_cast<Operation>(random.below(kOperations));
  const auto number = [&] { return static_cast<int>(random.below(kStrengths)); };
  const auto to_a_side = [&](double most) {
    const double size = strength(0, static_cast<float>(most), number());
    return random.below(2) == 1 ? -size : size;
  };
  const auto factor = [&] { return static_cast<float>(1 + to_a_side(kWholeSide)); };
  const Sampling sampling{interpolation};
  switch (operation) {
    case kShearX:
      image = sheared(image, to_a_side(kWholeSide), 0, sampling);
      break;
    case kShearY:
      image = sheared(image, 0, to_a_side(kWholeSide), sampling);
      break;
    case kTranslateX:
      image = translate(image, -std::trunc(to_a_side(kMostShift)), 0, sampling);
      break;
    case kTranslateY:
      image = translate(image, 0, -std::trunc(to_a_side(kMostShift)), sampling);
      break;
    case kRotate:
      image = rotate(image, to_a_side(kMostDegrees), sampling);
      break;
    case kBrightness:
      brightness(image, factor());
      break;
    case kColour:
      saturation(image, factor());
      break;
    case kContrast:
      contrast(image, factor());
      break;
    case kSharpness:
      sharpness(image, factor());
      break;
    case kPosterise:
      posterise(image, 8 - static_cast<int>(std::nearbyint(number() / 5.0)));
      break;
    case kSolarise:
      solarise(image, static_cast<int>(std::ceil(strength(255, 0, number()))));
      break;
    case kAutoContrast:
      auto_contrast(image);
      break;
    case kEqualise:
      equalise(image);
      break;
    case kIdentity:
    case kOperations:
      break;
  }
}

void three_augment(Image& image, const ThreeAugment& options, RandomStream& random) {
  switch (random.below(3)) {
    case 0:
      grayscale(image);
      break;
    case 1:
      solarise(image, options.solarise_threshold);
      break;
    default: {
      const double sigma = random.uniform(options.blur_low, options.blur_high);
      image = options.blur_kernel > 0 ? gaussian_blur(image, options.blur_kernel, sigma)
                                      : box_gaussian_blur(image, sigma);
    }
  }
  colour_jitter(image, options.jitter, random);
}

}  // namespace abl::images
