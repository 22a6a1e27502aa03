// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/histogram.h"

#include <algorithm>

#include "worker/trainer/augmentation/byte_table.h"

namespace abl::trainer {
namespace {

using Histogram = std::array<std::uint32_t, 256>;

std::array<Histogram, 3> count(const Image& image) {
  std::array<Histogram, 3> counts{};
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    for (std::size_t c = 0; c < 3; ++c) ++counts[c][image.pixels[i + c]];
  return counts;
}

/// The lowest and the highest value that occur.
struct Ends {
  int low, high;
};
Ends ends(const Histogram& counts) {
  Ends found{0, 255};
  while (found.low < 255 && counts[found.low] == 0) ++found.low;
  while (found.high > 0 && counts[found.high] == 0) --found.high;
  return found;
}

int unchanged(int value) { return value; }

ByteTable stretched(const Histogram& counts) {
  const auto [low, high] = ends(counts);
  if (high <= low) return byte_table(unchanged);
  // scale and offset apart, in double: (v - low)·scale would be cut off to another byte now and then
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return byte_table([&](int value) { return std::clamp(static_cast<int>(value * scale + offset), 0, 255); });
}

ByteTable flattened(const Histogram& counts) {
  const auto [low, high] = ends(counts);
  std::uint32_t below_brightest = 0;
  for (int value = low; value < high; ++value) below_brightest += counts[value];
  const std::uint32_t step = below_brightest / 255;  // pixels for each value of the output
  if (step == 0) return byte_table(unchanged);
  std::uint32_t before = step / 2;
  return byte_table([&](int value) {
    const std::uint32_t flat = before / step;
    before += counts[value];
    return std::min(255U, flat);
  });
}

template <class Function>
void map_channels(Image& image, Function table_of) {
  const auto counts = count(image);
  look_up(image, std::array<ByteTable, 3>{table_of(counts[0]), table_of(counts[1]), table_of(counts[2])});
}

}  // namespace

void auto_contrast(Image& image) { map_channels(image, stretched); }
void equalise(Image& image) { map_channels(image, flattened); }

}  // namespace abl::trainer
