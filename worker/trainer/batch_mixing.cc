// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/batch_mixing.h"

namespace abl::trainer {

Mix draw_mix_of(const config::RecipeConfig& recipe, int image_size, RandomStream& random) {
  Mixing options{.mixup_alpha = 0, .cutmix_alpha = 0, .probability = recipe.mixing_probability};
  if (recipe.mixing == "none") return {};
  if (recipe.mixing != "cutmix") options.mixup_alpha = recipe.mixing_alpha;
  if (recipe.mixing == "cutmix") options.cutmix_alpha = recipe.mixing_alpha;
  if (recipe.mixing == "mixup-or-cutmix") options.cutmix_alpha = recipe.cutmix_alpha;
  options.switch_probability = recipe.cutmix_share;
  return draw_mix(image_size, image_size, options, random);
}

void mix_batch(const Mix& mix, torch::Tensor& images, Targets& targets) {
  const torch::NoGradGuard no_grad;
  const bool is_mixed = mix.kind != Mix::Kind::kNone;
  const auto others = is_mixed ? images.flip(0) : images;
  if (mix.kind == Mix::Kind::kMixUp) {
    images.lerp_(others, 1 - mix.lambda);
  } else if (is_mixed) {
    const auto part = [&](const torch::Tensor& x) {
      return x.narrow(2, mix.box.top, mix.box.height).narrow(3, mix.box.left, mix.box.width);
    };
    part(images).copy_(part(others));
  }
  targets.other_labels = targets.labels.flip(0);
  const double share = is_mixed ? mix.lambda : 1;
  targets.shares = torch::tensor({share, 1 - share}, torch::kFloat32);
  if (images.is_cuda())
    targets.shares = targets.shares.pin_memory().to(images.device(), /*non_blocking=*/true);
}

}  // namespace abl::trainer
