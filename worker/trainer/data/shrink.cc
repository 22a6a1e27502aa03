// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/shrink.h"

#include <algorithm>
#include <cmath>

namespace abl::trainer {
namespace {

/// Which pixels of a line make up one of the shorter line, and with what weights.
struct Mean {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Mean> means(int from, int to) {
  const double scale = 1.0 * from / to;
  std::vector<Mean> result;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::ceil(centre - scale - 0.5)));
    const int last = std::min(from - 1, static_cast<int>(std::floor(centre + scale - 0.5)));
    Mean mean{.first = first};
    double sum = 0;
    for (int j = first; j <= last; ++j) sum += scale - std::abs(j + 0.5 - centre);
    for (int j = first; j <= last; ++j)
      mean.weights.push_back(static_cast<float>((scale - std::abs(j + 0.5 - centre)) / sum));
    result.push_back(std::move(mean));
  }
  return result;
}

}  // namespace

Image shrink(const Image& image, int width, int height) {
  const auto across = means(image.width, width), down = means(image.height, height);
  const auto row = std::size_t{3} * width;
  std::vector<float> narrow(row * image.height);  // [image.height, width, 3]
  for (std::size_t y = 0; y < static_cast<std::size_t>(image.height); ++y)
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x)
      for (std::size_t i = 0; i < across[x].weights.size(); ++i)
        for (std::size_t channel = 0; channel < 3; ++channel)
          narrow[y * row + 3 * x + channel] +=
              across[x].weights[i] * image.pixels[3 * (y * image.width + across[x].first + i) + channel];

  Image out{width, height, std::vector<std::uint8_t>(row * height)};
  std::vector<float> line(row);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::ranges::fill(line, 0.f);
    for (std::size_t i = 0; i < down[y].weights.size(); ++i)
      for (std::size_t x = 0; x < row; ++x)
        line[x] += down[y].weights[i] * narrow[(down[y].first + i) * row + x];
    for (std::size_t x = 0; x < row; ++x)
      out.pixels[y * row + x] = static_cast<std::uint8_t>(std::clamp(std::lround(line[x]), 0L, 255L));
  }
  return out;
}

}  // namespace abl::trainer
