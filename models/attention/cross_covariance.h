// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/projection/qkv_projection.h"

namespace abl::models {

struct CrossCovarianceOptions {
  QkvOptions qkv;
  std::int64_t heads = 0;
  bool l2_norm = true;              ///< of queries and keys, along the tokens
  bool learned_temperature = true;  ///< else it stays as it starts
  double temperature = 1.0;         ///< start; it multiplies the scores: 1/τ of the paper
};

/// Cross-covariance attention (XCA), without norm and residual: channels, not tokens, attend to each other.
///   V softmax(K̂ᵀ Q̂ / τ) in each head, K̂ and Q̂ of unit length along the tokens
/// The lengths divide the scores, which are few, and not the queries and keys; in float16 the latter, for the
/// scores of channels that are not normalised yet pass its largest number, 65504.
/// Parameters: `qkv`, `proj`, `temperature` [heads, 1, 1] where it is learned.
/// Shape: x [B, N, dim] -> [B, N, dim]; cost linear in N.
/// Source: XCiT eq. 1; the temperature as a factor for each head: the release.
class CrossCovarianceImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when the heads do not divide the width or the embedding has no meaning.
  explicit CrossCovarianceImpl(const CrossCovarianceOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

  /// How much of each value channel goes into each output channel: along the last dimension it sums to one.
  /// Shape: queries, keys [B, heads, N, d] -> [B, heads, d outputs, d values].
  torch::Tensor mixing(const torch::Tensor& queries, const torch::Tensor& keys) const;

 private:
  const CrossCovarianceOptions options_;
  QkvProjection qkv_;
  Linear proj_{nullptr};
  torch::Tensor temperature_;  ///< undefined where it is not learned
};
using CrossCovariance = Part<CrossCovarianceImpl>;

}  // namespace abl::models
