// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <optional>

#include "models/projection/nonlinear_qkv.h"

namespace abl::models {

/// How an attention comes by its queries, keys and values.
struct QkvOptions {
  std::int64_t dim = 0;
  std::optional<EmbeddingChoice> embedding;  ///< none: one linear layer
  bool bias = true;                          ///< of that linear layer
  Codes codes{nullptr};                      ///< those of the model, where the embedding uses such
};

/// One linear layer or an embedding. No module: it registers with its owner what it needs, as `qkv` and,
/// where each block has codes of its own, as `codes`.
/// Shape: x [B, N, dim] -> [B, N, 3·dim], queries first, then keys, then values.
class QkvProjection {
 public:
  QkvProjection(torch::nn::Module& owner, const QkvOptions& options, torch::Device device);
  torch::Tensor operator()(const torch::Tensor& x) const { return linear_ ? linear_(x) : embedding_(x); }

 private:
  Linear linear_{nullptr};
  NonLinearQkv embedding_{nullptr};
};

/// Refuses heads that do not divide the width.
/// Throws: c10::ValueError.
void check_heads(std::int64_t dim, std::int64_t heads);

}  // namespace abl::models
