// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "probes/probe.h"

namespace abl::probes {
namespace {

constexpr int kLeastSide = 112;  // of a tile, pixels
constexpr int kGap = 4;          // between two
constexpr images::Colour kGround{255, 255, 255};

/// From black to white by way of violet, red and yellow, each step brighter than the one before, so that it
/// is read in grey as well.
images::Colour colour_of(double value) {
  constexpr std::array<std::array<double, 3>, 5> kSteps{
      {{0, 0, 4}, {84, 24, 120}, {196, 56, 88}, {248, 152, 64}, {255, 255, 240}}};
  const double place = std::clamp(value, 0.0, 1.0) * (kSteps.size() - 1);
  const auto step = std::min(static_cast<std::size_t>(place), kSteps.size() - 2);
  const double part = place - static_cast<double>(step);
  images::Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i)
    colour[i] =
        static_cast<std::uint8_t>(std::lround(kSteps[step][i] * (1 - part) + kSteps[step + 1][i] * part));
  return colour;
}

/// Square tiles in rows and columns.
class Sheet {
 public:
  Sheet(std::int64_t rows, std::int64_t columns, int side)
      : side_{side}, image_{images::filled(length(columns), length(rows), kGround)} {}

  /// `colour`: of the tile's pixel in column x of row y.
  template <class ColourAt>
  void draw(std::int64_t row, std::int64_t column, const ColourAt& colour) {
    const int top = place(row), left = place(column);
    for (int y = 0; y < side_; ++y)
      for (int x = 0; x < side_; ++x)
        images::copy_pixel(colour(x, y).data(), image_.row(top + y) + std::size_t{3} * (left + x));
  }
  images::Image take() { return std::move(image_); }

 private:
  int place(std::int64_t index) const { return static_cast<int>(index) * (side_ + kGap); }
  int length(std::int64_t count) const { return place(count) - kGap; }

  const int side_;
  images::Image image_;
};

}  // namespace

images::Image draw_maps(const torch::Tensor& pixels, const torch::Tensor& maps) {
  const auto B = maps.size(0), H = maps.size(1), rows = maps.size(2), columns = maps.size(3);
  const auto S = static_cast<int>(pixels.size(1));
  const int side = S * std::max(1, (kLeastSide + S - 1) / S);
  const auto bytes = pixels.to(torch::kCPU).contiguous();
  const auto values = maps.to(torch::kCPU, torch::kDouble).contiguous();
  Sheet sheet{B, H + 1, side};
  for (std::int64_t image = 0; image < B; ++image) {
    const auto* shown = bytes.data_ptr<std::uint8_t>() + image * S * S * 3;
    sheet.draw(image, 0, [&](int x, int y) {
      images::Colour colour{};
      images::copy_pixel(shown + 3 * (std::int64_t{y} * S / side * S + std::int64_t{x} * S / side),
                         colour.data());
      return colour;
    });
    for (std::int64_t head = 0; head < H; ++head) {
      const auto map = values[image][head];
      const double lowest = map.min().item<double>(), reach = map.max().item<double>() - lowest;
      const auto* value = map.data_ptr<double>();
      sheet.draw(image, head + 1, [&](int x, int y) {
        const auto at = std::int64_t{y} * rows / side * columns + std::int64_t{x} * columns / side;
        return colour_of(reach > 0 ? (value[at] - lowest) / reach : 0);
      });
    }
  }
  return sheet.take();
}

}  // namespace abl::probes
