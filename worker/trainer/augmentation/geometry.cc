// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/geometry.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>

namespace abl::trainer {
namespace {

/// To 15 decimals, as Pillow rounds cosines: a right angle has whole ones.
double to_fifteen_places(double value) { return std::stod(fmt::format("{:.15f}", value)); }

/// The pixel (x, y) shows the one that `from(x, y)` points to.
template <class From>
Image rearranged(const Image& image, From from) {
  Image out = black(image.width, image.height);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) copy_pixel(from(x, y), out.row(y) + std::ptrdiff_t{3} * x);
  return out;
}

}  // namespace

Image shear_x(const Image& image, double factor, const Sampling& sampling) {
  return affine(image, {1, factor, 0, 0, 1, 0}, sampling);
}

Image shear_y(const Image& image, double factor, const Sampling& sampling) {
  return affine(image, {1, 0, 0, factor, 1, 0}, sampling);
}

Image translate(const Image& image, double right, double down, const Sampling& sampling) {
  return affine(image, {1, 0, right, 0, 1, down}, sampling);
}

Image translate_relative(const Image& image, double right, double down, const Sampling& sampling) {
  return translate(image, right * image.width, down * image.height, sampling);
}

Image rotate(const Image& image, double degrees, const Sampling& sampling) {
  double turned = std::fmod(degrees, 360.0);
  if (turned < 0) turned += 360;
  if (turned == 0) return image;
  const int last_x = image.width - 1, last_y = image.height - 1;
  const auto pixel = [&](int x, int y) { return image.row(y) + std::ptrdiff_t{3} * x; };
  if (turned == 180) return rearranged(image, [&](int x, int y) { return pixel(last_x - x, last_y - y); });
  if (turned == 90 && last_x == last_y)
    return rearranged(image, [&](int x, int y) { return pixel(last_x - y, x); });
  if (turned == 270 && last_x == last_y)
    return rearranged(image, [&](int x, int y) { return pixel(y, last_y - x); });

  const double angle = -(turned * (std::numbers::pi / 180));
  const double cosine = to_fifteen_places(std::cos(angle)), sine = to_fifteen_places(std::sin(angle));
  const double x = image.width / 2.0, y = image.height / 2.0;
  return affine(image,
                {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y},
                sampling);
}

}  // namespace abl::trainer
