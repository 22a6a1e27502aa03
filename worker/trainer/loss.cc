// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/loss.h"

namespace abl::trainer {
namespace {

namespace F = torch::nn::functional;

torch::Tensor some(const torch::Tensor& x, std::int64_t first, std::int64_t count) {
  return x.defined() ? x.narrow(0, first, count) : x;
}

torch::Tensor from_labels(const torch::Tensor& logits, const Targets& targets, double smoothing) {
  const auto options = F::CrossEntropyFuncOptions{}.label_smoothing(smoothing);
  const auto loss = F::cross_entropy(logits, targets.labels, options);
  if (!targets.other_labels.defined()) return loss;
  return targets.shares[0] * loss +
         targets.shares[1] * F::cross_entropy(logits, targets.other_labels, options);
}

torch::Tensor from_teacher(const torch::Tensor& logits, const torch::Tensor& teacher,
                           const config::RecipeConfig& recipe) {
  if (recipe.distillation == "hard") return F::cross_entropy(logits, teacher.argmax(1));
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

torch::Tensor loss_of(const torch::Tensor& logits, const Targets& targets,
                      const config::RecipeConfig& recipe) {
  const auto loss = from_labels(logits, targets, recipe.label_smoothing);
  if (!targets.teacher.defined()) return loss;
  return (1 - recipe.distillation_share) * loss +
         recipe.distillation_share * from_teacher(logits, targets.teacher, recipe);
}

}  // namespace abl::trainer
