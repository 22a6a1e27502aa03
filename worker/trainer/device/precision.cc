// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/device/precision.h"

#include <ATen/autocast_mode.h>

#include "models/weights/lowered_weights.h"

namespace abl::device {
namespace {

/// Products of a scope in `type`; float32: no autocast.
class Autocast {
 public:
  Autocast(torch::ScalarType type, torch::DeviceType device)
      : is_on_{type != torch::kFloat}, device_{device} {
    if (!is_on_) return;
    at::autocast::set_autocast_dtype(device_, type);
    at::autocast::set_autocast_enabled(device_, true);
  }
  ~Autocast() {
    if (!is_on_) return;
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool is_on_;
  const torch::DeviceType device_;
};

}  // namespace

torch::ScalarType computed_in(const config::RecipeConfig& recipe) {
  switch (recipe.precision) {
    case config::Precision::kBFloat16:
      return torch::kBFloat16;
    case config::Precision::kFloat16:
      return torch::kHalf;
    case config::Precision::kFloat32:
      break;
  }
  return torch::kFloat;
}

void compute(const torch::nn::Module& model, const torch::Tensor& images, const config::RecipeConfig& recipe,
             const std::function<void(const torch::Tensor& images)>& forward) {
  const auto type = models::weight_type(model);
  const Autocast autocast{type == torch::kFloat ? computed_in(recipe) : torch::kFloat,
                          images.device().type()};
  forward(images.to(type));
}

models::Answers answers_of(models::Classifier& model, const torch::Tensor& images,
                           const config::RecipeConfig& recipe) {
  models::Answers answers;
  compute(model, images, recipe, [&](const torch::Tensor& lowered) { answers = model.answer(lowered); });
  answers.logits = answers.logits.to(torch::kFloat);
  if (answers.distilled.defined()) answers.distilled = answers.distilled.to(torch::kFloat);
  return answers;
}

torch::Tensor logits_of(models::Classifier& model, const torch::Tensor& images,
                        const config::RecipeConfig& recipe) {
  return answers_of(model, images, recipe).combined();
}

torch::Tensor logits_by_parts(models::Classifier& model, const torch::Tensor& images,
                              const config::RecipeConfig& recipe, std::int64_t most) {
  if (images.size(0) <= most) return logits_of(model, images, recipe);
  std::vector<torch::Tensor> parts;
  for (const auto& part : images.split(most)) parts.push_back(logits_of(model, part, recipe));
  return torch::cat(parts);
}

}  // namespace abl::device
