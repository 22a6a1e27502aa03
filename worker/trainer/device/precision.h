// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>

#include "config/trial_config.h"
#include "models/backbones/classifier.h"

namespace abl::device {

/// The type of the recipe's `precision`.
torch::ScalarType computed_in(const config::RecipeConfig& recipe);

/// Runs `forward` with images as the model takes them: a model with float32 weights computes its products in
/// the recipe's precision by autocast, a model whose weights are lowered in the type of these.
/// Shape: images [B, 3, H, W], float32, normalised.
void compute(const torch::nn::Module& model, const torch::Tensor& images, const config::RecipeConfig& recipe,
             const std::function<void(const torch::Tensor& images)>& forward);

/// Answers in float32, [B, classes], of normalised images [B, 3, S, S], as `compute`.
models::Answers answers_of(models::Classifier& model, const torch::Tensor& images,
                           const config::RecipeConfig& recipe);

/// What the model is evaluated by of them.
torch::Tensor logits_of(models::Classifier& model, const torch::Tensor& images,
                        const config::RecipeConfig& recipe);

/// The same, at most `most` images at a time: what a model keeps of them at once does not grow with the
/// batch.
torch::Tensor logits_by_parts(models::Classifier& model, const torch::Tensor& images,
                              const config::RecipeConfig& recipe, std::int64_t most);

}  // namespace abl::device
