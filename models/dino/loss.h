// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace abl::models {

/// What a teacher says of its views: softmax((logits - centre) / temperature). The centre keeps one output
/// from winning always, the temperature keeps all from being equal.
/// Shape: logits [..., prototypes], centre [prototypes] -> as logits.
/// Source: DINO (ICCV 2021), eq. 1 and "Avoiding collapse" in section 3.1.
torch::Tensor teacher_targets(const torch::Tensor& logits, const torch::Tensor& centre, double temperature);

/// The mean over all pairs of a teacher's view and another view of the student of the cross entropy
/// - targets · log softmax(logits / temperature), and over images.
/// Shape: logits [views, B, prototypes], targets [global views, B, prototypes], whose views are the first of
///        the student's -> [].
/// Throws: c10::ValueError where no pair of different views is there.
/// Source: DINO, eq. 3.
torch::Tensor self_distillation_loss(const torch::Tensor& logits, const torch::Tensor& targets,
                                     double temperature);

}  // namespace abl::models
