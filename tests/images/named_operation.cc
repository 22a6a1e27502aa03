// SPDX-License-Identifier: Apache-2.0
#include "tests/images/named_operation.h"

#include <functional>
#include <map>
#include <utility>

#include "data/transform.h"
#include "images/pillow_enhance.h"
#include "images/pillow_ops.h"
#include "images/pillow_transform.h"
#include "images/timm_rand_augment.h"
#include "images/torchvision.h"

namespace abl::images {
namespace {

constexpr Colour kFill{124, 116, 104};  // MEAN_COLOUR of references.py

double real(const Words& words, std::size_t i) { return std::stod(words.at(i)); }
int whole(const Words& words, std::size_t i) { return std::stoi(words.at(i)); }

Sampling sampling(const std::string& name) {
  static const std::map<std::string, Interpolation> kNames{{"nearest", Interpolation::kNearest},
                                                           {"bilinear", Interpolation::kBilinear},
                                                           {"bicubic", Interpolation::kBicubic}};
  return {kNames.at(name), kFill};
}

RandomStream stream(const Words& words) { return {std::stoll(words.back()), Purpose::kAugmentation}; }

using Operation = std::function<Image(const Image&, const Words&)>;

Operation in_place(void (*change)(Image&)) {
  return [change](Image image, const Words&) {
    change(image);
    return image;
  };
}
Operation with_factor(void (*change)(Image&, float)) {
  return [change](Image image, const Words& words) {
    change(image, static_cast<float>(real(words, 0)));
    return image;
  };
}
/// `change(image, words)`
template <class Change>
Operation changing(Change change) {
  return [change](Image image, const Words& words) {
    change(image, words);
    return image;
  };
}
Operation sheared(Image (*shear)(const Image&, double, const Sampling&)) {
  return [shear](const Image& image, const Words& words) {
    return shear(image, real(words, 0), sampling(words.at(1)));
  };
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> kOperations{
      {"brightness", with_factor(brightness)},
      {"contrast", with_factor(contrast)},
      {"saturation", with_factor(saturation)},
      {"sharpness", with_factor(sharpness)},
      {"grayscale", in_place(grayscale)},
      {"invert", in_place(invert)},
      {"equalise", in_place(equalise)},
      {"auto_contrast", in_place(auto_contrast)},
      {"flip", in_place(flip)},
      {"hue", changing([](Image& image, const Words& w) { hue(image, real(w, 0)); })},
      {"solarise", changing([](Image& image, const Words& w) { solarise(image, whole(w, 0)); })},
      {"solarise_add", changing([](Image& image, const Words& w) { solarise_add(image, whole(w, 0)); })},
      {"posterise", changing([](Image& image, const Words& w) { posterise(image, whole(w, 0)); })},
      {"shear_x", sheared(shear_x)},
      {"shear_y", sheared(shear_y)},
      {"rotate", sheared(rotate)},
      {"affine",
       [](const Image& image, const Words& w) {
         const AffineMap map{real(w, 0), real(w, 1), real(w, 2), real(w, 3), real(w, 4), real(w, 5)};
         return affine(image, map, sampling(w.at(6)));
       }},
      {"translate",
       [](const Image& image, const Words& w) {
         return translate(image, real(w, 0), real(w, 1), sampling(w.at(2)));
       }},
      {"translate_x",
       [](const Image& image, const Words& w) {
         return translate_relative(image, real(w, 0), 0, sampling(w.at(1)));
       }},
      {"translate_y",
       [](const Image& image, const Words& w) {
         return translate_relative(image, 0, real(w, 0), sampling(w.at(1)));
       }},
      {"gaussian_blur",
       [](const Image& image, const Words& w) { return gaussian_blur(image, whole(w, 0), real(w, 1)); }},
      {"box_gaussian_blur",
       [](const Image& image, const Words& w) { return box_gaussian_blur(image, real(w, 0)); }},
      {"crop",
       [](const Image& image, const Words& w) {
         return crop(image, whole(w, 0), whole(w, 1), whole(w, 2), whole(w, 3));
       }},
      {"resize",
       [](const Image& image, const Words& w) {
         return resize(image, whole(w, 0), whole(w, 1), sampling(w.at(2)).interpolation);
       }},
      {"resize_box",
       [](const Image& image, const Words& w) {
         const auto side = [&](double from, double to, int size, int line) {
           return make_taps({.from = from, .length = to - from, .to = size, .count = size}, line,
                            sampling(w.at(6)).interpolation);
         };
         return resample(image, 0, 0, side(real(w, 2), real(w, 4), whole(w, 0), image.width),
                         side(real(w, 3), real(w, 5), whole(w, 1), image.height));
       }},
      {"centre",
       [](const Image& image, const Words& w) {
         return data::frame_centre(image.width, image.height, whole(w, 0), whole(w, 1),
                                   sampling(w.at(2)).interpolation)
             .of({.image = image,
                  .region = {.width = image.width, .height = image.height},
                  .width = 1.0 * image.width,
                  .height = 1.0 * image.height});
       }},
      {"pad",
       [](const Image& image, const Words& w) {
         return pad(image, whole(w, 0), whole(w, 1), whole(w, 2), whole(w, 3), kFill);
       }},
      {"pad_reflected",
       [](const Image& image, const Words& w) {
         return pad_reflected(image, whole(w, 0), whole(w, 1), whole(w, 2), whole(w, 3));
       }},
      {"colour_jitter", changing([](Image& image, const Words& w) {
         auto random = stream(w);
         colour_jitter(image, {real(w, 0), real(w, 1), real(w, 2), real(w, 3)}, random);
       })},
      {"three_augment", changing([](Image& image, const Words& w) {
         auto random = stream(w);
         three_augment(image, w.at(0) == "msf" ? kMsfThreeAugment : kDeitThreeAugment, random);
       })},
      {"rand_augment", changing([](Image& image, const Words& w) {
         auto random = stream(w);
         rand_augment(image, parse_rand_augment(w.at(0)), random);
       })},
      {"trivial_augment", changing([](Image& image, const Words& w) {
         auto random = stream(w);
         trivial_augment(image, sampling(w.at(0)).interpolation, random);
       })},
  };
  return kOperations;
}

}  // namespace

Image apply_named(const std::string& operation, const Image& image, const Words& arguments) {
  return operations().at(operation)(image, arguments);
}

}  // namespace abl::images
