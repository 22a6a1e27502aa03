// SPDX-License-Identifier: Apache-2.0
#include "images/timm_rand_augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "images/pillow_enhance.h"
#include "images/pillow_ops.h"

namespace abl::images {
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

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_{text} {}

  RandAugment read() {
    const auto parts = split();
    if (parts.front() != "rand") refuse("must begin with rand");
    for (std::size_t i = 1; i < parts.size(); ++i) read_part(parts[i]);
    return options_;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error{
        Code::kInvalidArgument,
        fmt::format(
            "RandAugment \"{}\": {}; expected rand and any of m, mstd, mmax, n, p, inc with a number, "
            "as in rand-m9-mstd0.5-inc1",
            text_, reason)};
  }

  std::vector<std::string_view> split() const {
    std::vector<std::string_view> parts;
    for (std::size_t from = 0; from <= text_.size();) {
      const auto to = std::min(text_.find('-', from), text_.size());
      parts.push_back(text_.substr(from, to - from));
      from = to + 1;
    }
    return parts;
  }

  void read_part(std::string_view part) {
    if (part.starts_with('t'))
      throw Error{
          Code::kUnimplemented,
          fmt::format("RandAugment \"{}\": sets of operations ({}) are not implemented; leave it out, and "
                      "choose by inc0 or inc1",
                      text_, part)};
    const auto digits = std::min(part.find_first_of("0123456789"), part.size());
    const auto name = part.substr(0, digits), number = part.substr(digits);
    if (!seen_.emplace(name).second) refuse(fmt::format("duplicate '{}'", name));
    if (name == "m")
      options_.magnitude = whole(part, number, 0, 1000);
    else if (name == "mmax")
      options_.magnitude_max = whole(part, number, 1, 1000);
    else if (name == "n")
      options_.operations = whole(part, number, 1, 100);
    else if (name == "inc")
      options_.increasing = whole(part, number, 0, 1) == 1;
    else if (name == "p")
      options_.probability = real(part, number, 0, 1);
    else if (name == "mstd")
      options_.magnitude_std = deviation(real(part, number, 0, 1e9));
    else
      refuse(fmt::format("unknown part '{}'", part));
  }

  static double deviation(double value) {
    return value > 100 ? std::numeric_limits<double>::infinity() : value;
  }

  template <class Number>
  Number number_of(std::string_view part, std::string_view digits, Number low, Number high,
                   const char* kind) const {
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < low || value > high)
      refuse(fmt::format("\"{}\" must be a {} from {} to {}", part, kind, low, high));
    return value;
  }
  int whole(std::string_view part, std::string_view digits, int low, int high) const {
    return number_of(part, digits, low, high, "whole number");
  }
  double real(std::string_view part, std::string_view digits, double low, double high) const {
    return number_of(part, digits, low, high, "number");
  }

  std::string_view text_;
  RandAugment options_;
  std::set<std::string_view> seen_;
};

}  // namespace

RandAugment parse_rand_augment(std::string_view text) { return Reader{text}.read(); }

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
};
constexpr int kOperations = kTranslateY + 1;

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
      case kRotate:
        return move(image, 30, rotate);
      case kShearX:
        return move(image, 0.3, shear_x);
      case kShearY:
        return move(image, 0.3, shear_y);
      case kTranslateX:
        return move(image, options_.translation,
                    [](const Image& from, double part, const Sampling& sampling) {
                      return translate_relative(from, part, 0, sampling);
                    });
      case kTranslateY:
        return move(image, options_.translation,
                    [](const Image& from, double part, const Sampling& sampling) {
                      return translate_relative(from, 0, part, sampling);
                    });
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

  /// To either side, by `largest` at level 1. The side is drawn before the interpolation.
  template <class Moved>
  void move(Image& image, double largest, Moved moved) {
    const double by = either_sign(level_ * largest);
    image = moved(image, by, sampling());
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

}  // namespace abl::images
