// SPDX-License-Identifier: Apache-2.0
#include "images/timm_mixing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace abl::images {
namespace {

double positive_uniform(RandomStream& random) {
  return 1 - random.uniform();
}  // in (0, 1]: it has a logarithm

/// X = U^(1/a) and Y = V^(1/b), given X + Y <= 1, make X/(X + Y) a Beta(a, b). In logarithms, relative to the
/// larger of the two: with small parameters both are often below what a double can hold.
double johnk(RandomStream& random, double a, double b) {
  for (;;) {
    const double log_x = std::log(positive_uniform(random)) / a;
    const double log_y = std::log(positive_uniform(random)) / b;
    const double larger = std::max(log_x, log_y);
    const double x = std::exp(log_x - larger), y = std::exp(log_y - larger);
    if (larger + std::log(x + y) <= 0) return x / (x + y);
  }
}

}  // namespace

double gamma(RandomStream& random, double shape) {
  if (shape < 1) {
    const double above = gamma(random, shape + 1);
    return above * std::pow(positive_uniform(random), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double normal = random.normal(), root = 1 + c * normal;
    if (root <= 0) continue;
    const double cube = root * root * root;
    if (std::log(positive_uniform(random)) < 0.5 * normal * normal + d - d * cube + d * std::log(cube))
      return d * cube;
  }
}

double beta(RandomStream& random, double a, double b) {
  if (a <= 1 && b <= 1) return johnk(random, a, b);
  const double x = gamma(random, a), y = gamma(random, b);
  return x / (x + y);
}

Rectangle cut_box(int width, int height, double lambda, int x, int y) {
  const double side = std::sqrt(1 - lambda);
  const int w = static_cast<int>(width * side), h = static_cast<int>(height * side);
  const int left = std::clamp(x - w / 2, 0, width), right = std::clamp(x + (w + 1) / 2, 0, width);
  const int top = std::clamp(y - h / 2, 0, height), bottom = std::clamp(y + (h + 1) / 2, 0, height);
  return {left, top, right - left, bottom - top};
}

Mix draw_mix(int width, int height, const Mixing& options, RandomStream& random) {
  const bool may_mix = options.mixup_alpha > 0, may_cut = options.cutmix_alpha > 0;
  if (!may_mix && !may_cut)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("mixing: the alphas of MixUp and CutMix are {} and {}; at least one must be above 0",
                    options.mixup_alpha, options.cutmix_alpha)};
  if (random.uniform() >= options.probability) return {};
  const bool cuts = may_cut && (!may_mix || random.uniform() < options.switch_probability);
  const double alpha = cuts ? options.cutmix_alpha : options.mixup_alpha;
  const double lambda = beta(random, alpha, alpha);
  if (lambda == 1) return {};
  if (!cuts) return {.kind = Mix::Kind::kMixUp, .lambda = lambda};
  const int y = static_cast<int>(random.below(static_cast<std::uint64_t>(height)));
  const int x = static_cast<int>(random.below(static_cast<std::uint64_t>(width)));
  const Rectangle box = cut_box(width, height, lambda, x, y);
  const double area = 1.0 * box.width * box.height;  // not the area drawn: whole pixels, and within the image
  return {.kind = Mix::Kind::kCutMix, .lambda = 1 - area / (1.0 * width * height), .box = box};
}

std::optional<Erasure> draw_erasure(int width, int height, const RandomErasing& options,
                                    RandomStream& random) {
  if (random.uniform() >= options.probability) return std::nullopt;
  const double area = 1.0 * width * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = random.uniform(options.area_low, options.area_high) * area;
    const double aspect =
        std::exp(random.uniform(std::log(options.aspect_low), std::log(options.aspect_high)));
    const int h = static_cast<int>(std::nearbyint(std::sqrt(target * aspect)));
    const int w = static_cast<int>(std::nearbyint(std::sqrt(target / aspect)));
    if (w >= width || h >= height) continue;
    const int top = static_cast<int>(random.below(static_cast<std::uint64_t>(height - h + 1)));
    const int left = static_cast<int>(random.below(static_cast<std::uint64_t>(width - w + 1)));
    return Erasure{.rectangle = {left, top, w, h}, .noise_seed = random.next()};
  }
  return std::nullopt;
}

}  // namespace abl::images
