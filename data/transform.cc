// SPDX-License-Identifier: Apache-2.0
#include "data/transform.h"

#include <cmath>

#include "config/recipe/evaluation_size.h"
#include "images/pillow_transform.h"
#include "images/torchvision.h"

namespace abl::data {
namespace {

/// One side of a framing: `length` pixels of a crop become `to`, of which `size` from `first` on are seen.
struct Side {
  int length, to, first, size;
  images::Interpolation interpolation;

  images::Taps at_full_scale() const {
    return images::make_taps({.length = static_cast<double>(length), .to = to, .first = first, .count = size},
                             length, interpolation);
  }
  /// Of a line of `line` pixels, which shows the crop from `from` on, `shown` pixels long.
  images::Taps reduced(double from, double shown, int line) const {
    return images::make_taps({.from = from, .length = shown, .to = to, .first = first, .count = size}, line,
                             interpolation);
  }
  /// Which pixels of the crop are used: first, and how many.
  std::pair<int, int> used() const {
    if (size == to) return {0, length};
    const images::Taps taps = at_full_scale();
    return {taps.begin, taps.end - taps.begin};
  }
};

}  // namespace

images::Wanted Framing::wanted(bool reduced) const {
  if (reduced) return {.region = crop, .width = width, .height = height};
  const auto [from_left, columns] = Side{crop.width, width, left, size, interpolation}.used();
  const auto [from_top, rows] = Side{crop.height, height, top, size, interpolation}.used();
  return {.region = {
              .left = crop.left + from_left, .top = crop.top + from_top, .width = columns, .height = rows}};
}

images::Image Framing::of(const images::DecodedRegion& decoded) const {
  const Side across{crop.width, width, left, size, interpolation},
      down{crop.height, height, top, size, interpolation};
  const auto& region = decoded.region;
  if (region == crop && decoded.width < crop.width)
    return images::resample(decoded.image, 0, 0,
                            across.reduced(decoded.left, decoded.width, decoded.image.width),
                            down.reduced(decoded.top, decoded.height, decoded.image.height));
  return images::resample(decoded.image, region.left - crop.left, region.top - crop.top,
                          across.at_full_scale(), down.at_full_scale());
}

Framing frame_centre(int width, int height, int resize, int size, images::Interpolation interpolation) {
  const auto longer = [&](int side, int other) {
    return side <= other ? resize : static_cast<int>(1.0 * resize * side / other);
  };
  // to the nearest, halves to even, as Python rounds
  const auto margin = [&](int side) { return static_cast<int>(std::nearbyint((side - size) / 2.0)); };
  Framing framing{.crop = {.width = width, .height = height},
                  .width = longer(width, height),
                  .height = longer(height, width),
                  .size = size,
                  .interpolation = interpolation};
  framing.left = margin(framing.width), framing.top = margin(framing.height);
  return framing;
}

namespace {

images::Interpolation interpolation_of(const config::RecipeConfig& recipe) {
  switch (recipe.interpolation) {
    case config::Resampling::kBilinear:
      return images::Interpolation::kBilinear;
    case config::Resampling::kBicubic:
      break;
  }
  return images::Interpolation::kBicubic;
}

/// `draw(width, height)` gives the framing.
template <class Draw>
std::optional<Prepared> framed(const ImageSource& images, std::uint32_t index, bool reduced,
                               const Draw& draw) {
  Framing framing;
  const auto region = images.decode(index, [&](int width, int height) {
    framing = draw(width, height);
    return framing.wanted(reduced);
  });
  if (!region) return std::nullopt;
  return Prepared{.image = framing.of(*region), .erasure = {}, .label = region->label};
}

}  // namespace

std::optional<Prepared> centre_of(const ImageSource& images, std::uint32_t index,
                                  const config::RecipeConfig& recipe, int image_size) {
  const int resize = config::evaluation_side(image_size, recipe.eval_crop_ratio);
  return framed(images, index, /*reduced=*/false, [&](int width, int height) {
    return frame_centre(width, height, resize, image_size, interpolation_of(recipe));
  });
}

Augmentation::Augmentation(const config::RecipeConfig& recipe, const config::DataConfig& data)
    : recipe_{recipe},
      image_size_{data.image_size},
      reduced_{data.decode == config::Decode::kReduced},
      interpolation_{interpolation_of(recipe)} {
  if (recipe_.randaugment == "none") return;
  rand_augment_ = images::parse_rand_augment(recipe_.randaugment);
  rand_augment_->interpolation = interpolation_;  // as timm does where the recipe names one
}

Framing Augmentation::draw_framing(int width, int height, images::RandomStream& random) const {
  switch (recipe_.crop) {
    case config::Crop::kNone:
    case config::Crop::kPad:  // once it is decoded
      return frame_centre(width, height, image_size_, image_size_, interpolation_);
    case config::Crop::kResized:
      break;
  }
  return {.crop = images::draw_resized_crop(width, height, {.area_low = recipe_.crop_area}, random),
          .width = image_size_,
          .height = image_size_,
          .size = image_size_,
          .interpolation = interpolation_};
}

std::optional<Prepared> Augmentation::operator()(const ImageSource& images, std::uint32_t index,
                                                 images::RandomStream& random) const {
  auto prepared = framed(images, index, reduced_,
                         [&](int width, int height) { return draw_framing(width, height, random); });
  if (prepared) change(*prepared, random);
  return prepared;
}

void Augmentation::change(Prepared& prepared, images::RandomStream& random) const {
  if (recipe_.crop == config::Crop::kPad) {
    const auto shift = [&] {
      return static_cast<int>(random.below(std::uint64_t{2} * recipe_.crop_padding + 1)) -
             recipe_.crop_padding;
    };
    const int left = shift(), top = shift();
    prepared.image = images::crop(prepared.image, left, top, image_size_, image_size_);
  }
  if (recipe_.flip > 0 && random.uniform() < recipe_.flip) images::flip(prepared.image);
  if (rand_augment_) images::rand_augment(prepared.image, *rand_augment_, random);
  if (recipe_.trivial_augment) images::trivial_augment(prepared.image, interpolation_, random);
  const images::ColourJitter jitter{.brightness = recipe_.color_jitter,
                                    .contrast = recipe_.color_jitter,
                                    .saturation = recipe_.color_jitter};
  switch (recipe_.appearance) {
    case config::Appearance::kNone:
      if (recipe_.color_jitter > 0) images::colour_jitter(prepared.image, jitter, random);
      break;
    case config::Appearance::kThreeAugment: {
      auto three = images::kMsfThreeAugment;
      three.jitter = jitter;
      images::three_augment(prepared.image, three, random);
      break;
    }
  }
  if (recipe_.random_erasing > 0)
    prepared.erasure =
        images::draw_erasure(image_size_, image_size_, {.probability = recipe_.random_erasing}, random);
}

}  // namespace abl::data
