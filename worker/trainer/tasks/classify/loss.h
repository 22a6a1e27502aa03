// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "config/trial_config.h"
#include "images/timm_mixing.h"
#include "models/backbones/classifier.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// What a batch is to be recognised as.
struct Targets {
  torch::Tensor labels;        ///< [B]
  torch::Tensor other_labels;  ///< [B]: of the image that is mixed in; undefined where the recipe mixes none
  torch::Tensor shares;        ///< [2], float32: of `labels` and of `other_labels`; undefined as these
  torch::Tensor teacher;       ///< [B, classes]: logits of the teacher; undefined without one

  /// Those of some images of the batch.
  Targets narrow(std::int64_t first, std::int64_t count) const;
};

/// The mean loss of a batch: the recipe's, with smoothed labels, shared between two labels where images are
/// mixed, and its share of what the teacher says.
///   binary: cross entropy of each class with its target, 0 or 1 by the recipe's threshold, the mean over all
///   hard: cross entropy with the teacher's most likely class
///   soft: T² KL(teacher ‖ student), both at temperature T, over B · classes as in DeiT's release
/// A head that is there for the teacher learns from it alone, the other one from labels alone; without a
/// teacher their mean learns from labels.
/// Shape: answers [B, classes], float -> [].
/// Source: XCiT section 3.3 and its release, after DeiT (section 4: the distillation token); binary: timm
///         1.0.31, BinaryCrossEntropy.
torch::Tensor loss_of(const models::Answers& answers, const Targets& targets,
                      const config::RecipeConfig& recipe);

/// How a batch is mixed by a recipe; drawn from a stream of its own for each step.
images::Mix draw_mix_of(const config::RecipeConfig& recipe, int image_size, images::RandomStream& random);

/// Mixes every image with that of the opposite place in the batch, and its label. A batch that is drawn not
/// to be mixed has no share of the other label: all steps of a recipe do the same.
/// Shape: images [B, 3, S, S], changed in place.
void mix_batch(const images::Mix& mix, torch::Tensor& images, Targets& targets);

/// To recognise images [B, 3, S, S], normalised, on the device.
Work work_of(models::Classifier& model, const torch::Tensor& images, const Targets& targets,
             const config::RecipeConfig& recipe);

}  // namespace abl::tasks
