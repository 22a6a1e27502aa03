// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/transform.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "worker/trainer/augmentation/colour_jitter.h"
#include "worker/trainer/augmentation/crop.h"
#include "worker/trainer/augmentation/resized_crop.h"
#include "worker/trainer/augmentation/three_augment.h"

namespace abl::trainer {

Interpolation interpolation_of(const config::RecipeConfig& recipe) {
  return recipe.interpolation == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear;
}

Image resize(const Image& image, int width, int height, Interpolation interpolation) {
  if (image.width == width && image.height == height) return image;
  const torch::NoGradGuard no_grad;
  // LibTorch's kernels for bytes are Pillow's algorithm, vectorised; they only read
  const auto in = torch::from_blob(const_cast<std::uint8_t*>(image.pixels.data()),
                                   {1, image.height, image.width, 3}, torch::kUInt8)
                      .permute({0, 3, 1, 2});
  const auto scaled = interpolation == Interpolation::kBicubic
                          ? at::_upsample_bicubic2d_aa(in, {height, width}, /*align_corners=*/false)
                          : at::_upsample_bilinear2d_aa(in, {height, width}, /*align_corners=*/false);
  const auto out = scaled.permute({0, 2, 3, 1}).contiguous();  // [1, height, width, 3]
  const auto* bytes = out.const_data_ptr<std::uint8_t>();
  return Image{width, height, {bytes, bytes + out.numel()}};
}

Image centre(const Image& image, int target, int image_size, Interpolation interpolation) {
  const double scale = 1.0 * target / std::min(image.width, image.height);
  const Image scaled =
      resize(image, std::max(image_size, static_cast<int>(std::lround(image.width * scale))),
             std::max(image_size, static_cast<int>(std::lround(image.height * scale))), interpolation);
  if (scaled.width == image_size && scaled.height == image_size) return scaled;
  return crop(scaled, (scaled.width - image_size) / 2, (scaled.height - image_size) / 2, image_size,
              image_size);
}

Augmentation::Augmentation(const config::RecipeConfig& recipe, int image_size)
    : recipe_{recipe}, image_size_{image_size}, interpolation_{interpolation_of(recipe)} {
  if (recipe_.randaugment == "none") return;
  rand_augment_ = parse_rand_augment(recipe_.randaugment);
  rand_augment_->interpolation = interpolation_;  // as timm does where the recipe names one
}

Image Augmentation::crop_of(const Image& image, RandomStream& random) const {
  if (recipe_.crop == "resized") {
    const auto part = draw_resized_crop(image.width, image.height, {.area_low = recipe_.crop_area}, random);
    return resize(crop(image, part.left, part.top, part.width, part.height), image_size_, image_size_,
                  interpolation_);
  }
  const Image whole = centre(image, image_size_, image_size_, interpolation_);
  if (recipe_.crop == "none") return whole;
  const auto shift = [&] {
    return static_cast<int>(random.below(std::uint64_t{2} * recipe_.crop_padding + 1)) - recipe_.crop_padding;
  };
  const int left = shift(), top = shift();
  return crop(whole, left, top, image_size_, image_size_);
}

View Augmentation::operator()(const Image& image, RandomStream& random) const {
  View view{.image = crop_of(image, random), .erasure = {}};
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
  return view;
}

}  // namespace abl::trainer
