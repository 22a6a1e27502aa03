// SPDX-License-Identifier: Apache-2.0
#include "models/dino/loss.h"

namespace abl::models {

torch::Tensor teacher_targets(const torch::Tensor& logits, const torch::Tensor& centre, double temperature) {
  return ((logits - centre) / temperature).softmax(-1);
}

torch::Tensor self_distillation_loss(const torch::Tensor& logits, const torch::Tensor& targets,
                                     double temperature) {
  const auto views = logits.size(0), globals = targets.size(0), images = logits.size(1);
  TORCH_CHECK_VALUE(
      views >= 2 && globals >= 1 && globals <= views && images > 0, "a student's ", views,
      " and a teacher's ", globals, " views of ", images,
      " images; expected at least two views of at least one image, the teacher's among the student's");
  const auto logs = (logits / temperature).log_softmax(-1);
  // each of the teacher's against the sum of all others: 2 products in place of 2 (views - 1)
  const auto others = logs.sum(0, /*keepdim=*/true) - logs.narrow(0, 0, globals);
  return -(targets * others).sum() / static_cast<double>(globals * (views - 1) * images);
}

}  // namespace abl::models
