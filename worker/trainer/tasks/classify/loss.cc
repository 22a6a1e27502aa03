// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/classify/loss.h"

#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include "base/error.h"

namespace abl::tasks {

images::Mix draw_mix_of(const config::RecipeConfig& recipe, int image_size, images::RandomStream& random) {
  images::Mixing options{.mixup_alpha = 0, .cutmix_alpha = 0, .probability = recipe.mixing_probability};
  switch (recipe.mixing) {
    case config::MixingKind::kNone:
      return {};
    case config::MixingKind::kMixUp:
      options.mixup_alpha = recipe.mixing_alpha;
      break;
    case config::MixingKind::kCutMix:
      options.cutmix_alpha = recipe.mixing_alpha;
      break;
    case config::MixingKind::kMixUpOrCutMix:
      options.mixup_alpha = recipe.mixing_alpha;
      options.cutmix_alpha = recipe.cutmix_alpha;
      break;
  }
  options.switch_probability = recipe.cutmix_share;
  return images::draw_mix(image_size, image_size, options, random);
}

void mix_batch(const images::Mix& mix, torch::Tensor& images, Targets& targets) {
  const torch::NoGradGuard no_grad;
  const bool is_mixed = mix.kind != images::Mix::Kind::kNone;
  const auto others = is_mixed ? images.flip(0) : images;
  if (mix.kind == images::Mix::Kind::kMixUp) {
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

namespace {

namespace F = torch::nn::functional;

torch::Tensor some(const torch::Tensor& x, std::int64_t first, std::int64_t count) {
  return x.defined() ? x.narrow(0, first, count) : x;
}

/// Of every class, labels smoothed and mixed. Shape: [B, classes].
torch::Tensor dense_targets(const torch::Tensor& logits, const Targets& targets, double smoothing) {
  const double off = smoothing / static_cast<double>(logits.size(1)), on = 1 - smoothing + off;
  const auto of = [&](const torch::Tensor& labels) {
    return torch::full_like(logits, off).scatter_(1, labels.unsqueeze(1), on);
  };
  if (!targets.other_labels.defined()) return of(targets.labels);
  return targets.shares[0] * of(targets.labels) + targets.shares[1] * of(targets.other_labels);
}

torch::Tensor class_by_class(const torch::Tensor& logits, const Targets& targets,
                             const config::RecipeConfig& recipe) {
  const torch::Tensor wanted = [&] {
    const torch::NoGradGuard no_grad;
    const auto dense = dense_targets(logits.detach(), targets, recipe.label_smoothing);
    return recipe.target_threshold > 0 ? dense.gt(recipe.target_threshold).to(dense.dtype()) : dense;
  }();
  return F::binary_cross_entropy_with_logits(logits, wanted);
}

torch::Tensor from_labels(const torch::Tensor& logits, const Targets& targets,
                          const config::RecipeConfig& recipe) {
  switch (recipe.loss) {
    case config::Loss::kBinaryCrossEntropy:
      return class_by_class(logits, targets, recipe);
    case config::Loss::kCrossEntropy:
      break;
  }
  const auto options = F::CrossEntropyFuncOptions{}.label_smoothing(recipe.label_smoothing);
  const auto loss = F::cross_entropy(logits, targets.labels, options);
  if (!targets.other_labels.defined()) return loss;
  return targets.shares[0] * loss +
         targets.shares[1] * F::cross_entropy(logits, targets.other_labels, options);
}

torch::Tensor from_teacher(const torch::Tensor& logits, const torch::Tensor& teacher,
                           const config::RecipeConfig& recipe) {
  switch (recipe.distillation) {
    case config::Distillation::kNone:
      throw Error{Code::kInternal, "a teacher's answers in a recipe without distillation"};
    case config::Distillation::kHard:
      return F::cross_entropy(logits, teacher.argmax(1));
    case config::Distillation::kSoft:
      break;
  }
  const double T = recipe.distillation_temperature;
  const auto divergence = F::kl_div((logits / T).log_softmax(1), (teacher / T).log_softmax(1),
                                    F::KLDivFuncOptions{}.reduction(torch::kSum).log_target(true));
  return divergence * (T * T / static_cast<double>(logits.numel()));
}

}  // namespace

Targets Targets::narrow(std::int64_t first, std::int64_t count) const {
  return {.labels = some(labels, first, count),
          .other_labels = some(other_labels, first, count),
          .shares = shares,
          .teacher = some(teacher, first, count)};
}

torch::Tensor loss_of(const models::Answers& answers, const Targets& targets,
                      const config::RecipeConfig& recipe) {
  if (!targets.teacher.defined()) return from_labels(answers.combined(), targets, recipe);
  const auto& [logits, distilled] = answers;
  return (1 - recipe.distillation_share) * from_labels(logits, targets, recipe) +
         recipe.distillation_share *
             from_teacher(distilled.defined() ? distilled : logits, targets.teacher, recipe);
}

}  // namespace abl::tasks
