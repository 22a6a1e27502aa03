// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/gaussian_blur.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "worker/trainer/augmentation/reflect.h"

namespace abl::trainer {
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

}  // namespace abl::trainer
