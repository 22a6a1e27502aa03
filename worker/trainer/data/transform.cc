// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/transform.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "worker/trainer/augmentation/crop.h"

namespace abl::trainer {
namespace {

/// Area 8 % to 100 %, aspect 3/4 to 4/3 of the image; the whole centre after ten misses. The field's usual
/// random resized crop.
Image random_resized_crop(const Image& image, int size, RandomStream& random) {
  const double area = 1.0 * image.width * image.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(0.08, 1.0);
    const double aspect = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int width = static_cast<int>(std::lround(std::sqrt(target * aspect)));
    const int height = static_cast<int>(std::lround(std::sqrt(target / aspect)));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int left = static_cast<int>(random.below(static_cast<std::uint64_t>(image.width - width + 1)));
    const int top = static_cast<int>(random.below(static_cast<std::uint64_t>(image.height - height + 1)));
    return resize(crop(image, left, top, width, height), size, size);
  }
  return centre(image, size, size);
}

}  // namespace

Image resize(const Image& image, int width, int height) {
  if (image.width == width && image.height == height) return image;
  const torch::NoGradGuard no_grad;
  // LibTorch's kernel for bytes is Pillow's algorithm, vectorised; it only reads
  const auto in = torch::from_blob(const_cast<std::uint8_t*>(image.pixels.data()),
                                   {1, image.height, image.width, 3}, torch::kUInt8);
  const auto out = at::_upsample_bilinear2d_aa(in.permute({0, 3, 1, 2}), {height, width}, false)
                       .permute({0, 2, 3, 1})
                       .contiguous();  // [1, height, width, 3]
  const auto* bytes = out.const_data_ptr<std::uint8_t>();
  return Image{width, height, {bytes, bytes + out.numel()}};
}

Image centre(const Image& image, int target, int image_size) {
  const double scale = 1.0 * target / std::min(image.width, image.height);
  const Image scaled = resize(image, std::max(image_size, static_cast<int>(std::lround(image.width * scale))),
                              std::max(image_size, static_cast<int>(std::lround(image.height * scale))));
  if (scaled.width == image_size && scaled.height == image_size) return scaled;
  return crop(scaled, (scaled.width - image_size) / 2, (scaled.height - image_size) / 2, image_size,
              image_size);
}

Image augment(const Image& image, const config::RecipeConfig& recipe, int image_size, RandomStream& random) {
  Image out;
  if (recipe.crop == "resized") {
    out = random_resized_crop(image, image_size, random);
  } else {
    out = centre(image, image_size, image_size);
    if (recipe.crop == "pad") {
      const auto shift = [&] {
        return static_cast<int>(random.below(std::uint64_t{2} * recipe.crop_padding + 1)) -
               recipe.crop_padding;
      };
      const int left = shift(), top = shift();
      out = crop(out, left, top, image_size, image_size);
    }
  }
  if (recipe.flip > 0 && random.uniform() < recipe.flip) flip(out);
  return out;
}

void check_supported(const config::RecipeConfig& recipe) {
  std::string parts;
  const auto refuse = [&](bool asked, const char* part) {
    if (asked) parts += (parts.empty() ? "" : ", ") + std::string{part};
  };
  refuse(recipe.color_jitter > 0, "recipe.color_jitter");
  refuse(recipe.appearance != "none", "recipe.appearance");
  refuse(recipe.mixing != "none", "recipe.mixing");
  refuse(recipe.repeated_augmentation > 1, "recipe.repeated_augmentation");
  if (!parts.empty())
    throw Error{Code::kUnimplemented,
                "this trainer does not do " + parts + "; set it to its neutral value, or plan only"};
}

}  // namespace abl::trainer
