// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/rand_augment.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/trainer/augmentation/colour.h"
#include "worker/trainer/augmentation/geometry.h"
#include "worker/trainer/augmentation/histogram.h"
#include "worker/trainer/augmentation/sharpness.h"
#include "worker/trainer/augmentation/threshold.h"

namespace abl::trainer {
namespace {

/// timm's order, in which they are drawn. Those from posterise to sharpness, but for solarise_add, have an
/// increasing form.
enum Operation {
  kAutoContrast,
  kEqualise,
  kInvert,
  kRotate,
  kPosterise,
  kSolarise,
  kSolariseAdd,
  kSaturation,
  kContrast,
  kBrightness,
  kSharpness,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kOperations
};

/// One operation on one image: `level` is its strength, 0 … 1 unless the maximum magnitude is above 10.
class Application {
 public:
  Application(const RandAugment& options, double level, RandomStream& random)
      : options_{options}, level_{level}, random_{random} {}

  void apply(Operation operation, Image& image) {
    switch (operation) {
      case kAutoContrast:
        return auto_contrast(image);
      case kEqualise:
        return equalise(image);
      case kInvert:
        return invert(image);
      case kPosterise:
        return posterise(image, options_.increasing ? 4 - steps(4) : steps(4));
      case kSolarise:
        return solarise(image,
                        options_.increasing ? 256 - std::min(256, steps(256)) : std::min(256, steps(256)));
      case kSolariseAdd:
        return solarise_add(image, std::min(128, steps(110)));
      case kSaturation:
        return saturation(image, factor());
      case kContrast:
        return contrast(image, factor());
      case kBrightness:
        return brightness(image, factor());
      case kSharpness:
        return sharpness(image, factor());
      default:
        image = moved(operation, image);
    }
  }

 private:
  int steps(int most) const { return static_cast<int>(level_ * most); }
  double either_sign(double value) { return random_.uniform() > 0.5 ? -value : value; }

  /// 1 changes nothing: the increasing form goes away from it to either side, the other from 0.1 to 1.9.
  float factor() {
    const double value =
        options_.increasing ? std::max(0.1, 1.0 + either_sign(level_ * 0.9)) : level_ * 1.8 + 0.1;
    return static_cast<float>(value);
  }

  Sampling sampling() {
    if (options_.interpolation) return {*options_.interpolation, options_.fill};
    return {random_.below(2) == 0 ? Interpolation::kBilinear : Interpolation::kBicubic, options_.fill};
  }

  Image moved(Operation operation, const Image& image) {
    switch (operation) {
      case kRotate: {
        const double degrees = either_sign(level_ * 30);
        return rotate(image, degrees, sampling());
      }
      case kShearX:
      case kShearY: {
        const double factor = either_sign(level_ * 0.3);
        return operation == kShearX ? shear_x(image, factor, sampling()) : shear_y(image, factor, sampling());
      }
      default: {
        const double part = either_sign(level_ * options_.translation);
        return operation == kTranslateX ? translate_relative(image, part, 0, sampling())
                                        : translate_relative(image, 0, part, sampling());
      }
    }
  }

  const RandAugment& options_;
  const double level_;
  RandomStream& random_;
};

double draw_magnitude(const RandAugment& options, RandomStream& random) {
  double magnitude = options.magnitude;
  if (std::isinf(options.magnitude_std))
    magnitude = random.uniform(0, magnitude);
  else if (options.magnitude_std > 0)
    magnitude += options.magnitude_std * random.normal();
  return std::clamp(magnitude, 0.0, static_cast<double>(options.magnitude_max));
}

}  // namespace

void rand_augment(Image& image, const RandAugment& options, RandomStream& random) {
  std::vector<Operation> drawn;
  for (int i = 0; i < options.operations; ++i)
    drawn.push_back(static_cast<Operation>(random.below(kOperations)));
  for (const Operation operation : drawn) {
    if (options.probability < 1 && random.uniform() >= options.probability) continue;
    const double level = draw_magnitude(options, random) / 10;
    Application{options, level, random}.apply(operation, image);
  }
}

}  // namespace abl::trainer
