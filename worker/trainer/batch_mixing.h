// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "config/trial_config.h"
#include "worker/trainer/augmentation/mixing.h"
#include "worker/trainer/loss.h"

namespace abl::trainer {

/// How a batch is mixed by a recipe; drawn from a stream of its own for each step.
Mix draw_mix_of(const config::RecipeConfig& recipe, int image_size, RandomStream& random);

/// Mixes every image with that of the opposite place in the batch, and its label. A batch that is drawn not
/// to be mixed has no share of the other label: all steps of a recipe do the same.
/// Shape: images [B, 3, S, S], changed in place.
void mix_batch(const Mix& mix, torch::Tensor& images, Targets& targets);

}  // namespace abl::trainer
