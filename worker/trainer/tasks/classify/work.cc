// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/classify/loss.h"

#include <torch/utils.h>

#include "worker/trainer/device/precision.h"

namespace abl::tasks {
namespace {

enum Input { kImages, kLabels, kOtherLabels, kShares, kTeacher };

Work::Inputs inputs_of(const torch::Tensor& images, const Targets& targets) {
  return {images, targets.labels, targets.other_labels, targets.shares, targets.teacher};
}

Targets targets_in(const Work::Inputs& inputs) {
  return {.labels = inputs[kLabels],
          .other_labels = inputs[kOtherLabels],
          .shares = inputs[kShares],
          .teacher = inputs[kTeacher]};
}

}  // namespace

Work work_of(models::Classifier& model, const torch::Tensor& images, const Targets& targets,
             const config::RecipeConfig& recipe) {
  return {.images = images.size(0),
          .inputs = inputs_of(images, targets),
          .loss = [&model, &recipe](const Work::Inputs& inputs, std::int64_t first, std::int64_t count) {
            const auto part = targets_in(inputs).narrow(first, count);
            const auto answers = device::answers_of(model, inputs[kImages].narrow(0, first, count), recipe);
            const auto loss = loss_of(answers, part, recipe);
            const torch::NoGradGuard no_grad;
            return PartLoss{.mean = loss,
                            .correct = answers.combined().detach().argmax(1).eq(part.labels).sum()};
          }};
}

}  // namespace abl::tasks
