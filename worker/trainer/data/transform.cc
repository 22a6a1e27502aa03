// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/transform.h"

#include "config/evaluation_size.h"
#include "worker/trainer/augmentation/colour_jitter.h"
#include "worker/trainer/augmentation/crop.h"
#include "worker/trainer/augmentation/resized_crop.h"
#include "worker/trainer/augmentation/three_augment.h"

namespace abl::trainer {
namespace {

Interpolation interpolation_of(const config::RecipeConfig& recipe) {
  return recipe.interpolation == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear;
}

/// `draw(width, height)` gives the framing.
template <class Draw>
std::optional<Prepared> framed(const ImageSource& images, std::uint32_t index, bool reduced,
                               const Draw& draw) {
  Framing framing;
  const auto region = images.view(index, [&](int width, int height) {
    framing = draw(width, height);
    return framing.wanted(reduced);
  });
  if (!region) return std::nullopt;
  return Prepared{.view = {.image = framing.of(*region), .erasure = {}}, .label = region->label};
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
      reduced_{data.decode == "reduced"},
      interpolation_{interpolation_of(recipe)} {
  if (recipe_.randaugment == "none") return;
  rand_augment_ = parse_rand_augment(recipe_.randaugment);
  rand_augment_->interpolation = interpolation_;  // as timm does where the recipe names one
}

Framing Augmentation::draw_framing(int width, int height, RandomStream& random) const {
  if (recipe_.crop != "resized") return frame_centre(width, height, image_size_, image_size_, interpolation_);
  return {.crop = draw_resized_crop(width, height, {.area_low = recipe_.crop_area}, random),
          .width = image_size_,
          .height = image_size_,
          .size = image_size_,
          .interpolation = interpolation_};
}

std::optional<Prepared> Augmentation::operator()(const ImageSource& images, std::uint32_t index,
                                                 RandomStream& random) const {
  auto prepared = framed(images, index, reduced_,
                         [&](int width, int height) { return draw_framing(width, height, random); });
  if (prepared) change(prepared->view, random);
  return prepared;
}

void Augmentation::change(View& view, RandomStream& random) const {
  if (recipe_.crop == "pad") {
    const auto shift = [&] {
      return static_cast<int>(random.below(std::uint64_t{2} * recipe_.crop_padding + 1)) -
             recipe_.crop_padding;
    };
    const int left = shift(), top = shift();
    view.image = crop(view.image, left, top, image_size_, image_size_);
  }
  if (recipe_.flip > 0 && random.uniform() < recipe_.flip) flip(view.image);
  if (rand_augment_) rand_augment(view.image, *rand_augment_, random);
  const ColourJitter jitter{.brightness = recipe_.color_jitter,
                            .contrast = recipe_.color_jitter,
                            .saturation = recipe_.color_jitter};
  if (recipe_.appearance == "3-augment") {
    auto three = kMsfThreeAugment;
    three.jitter = jitter;
    three_augment(view.image, three, random);
  } else if (recipe_.color_jitter > 0) {
    colour_jitter(view.image, jitter, random);
  }
  if (recipe_.random_erasing > 0)
    view.erasure = draw_erasure(image_size_, image_size_, {.probability = recipe_.random_erasing}, random);
}

}  // namespace abl::trainer
