// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/choices/key.h"
#include "models/layers/layers.h"

/// The two products of a manifold key that see its charts. Between them a chart holds the tokens of a batch
/// in one row each: [charts, N, B·dim], so that both are plain batched products.
namespace abl::models {

/// Every token becomes one token in each chart.
///   X_h = Γ_h ⊙ X W_hᵀ
/// Γ is put on the matrix, which is smaller than the product.
/// Parameters: `weight` [charts·dim, dim], chart after chart; Γ is the caller's.
/// Shape: x [M, dim], gamma [charts·dim] -> [charts, M, dim].
/// Source: manifold key eq. 2.
class ChartExpansionImpl : public torch::nn::Module, public WeightOwner {
 public:
  ChartExpansionImpl(std::int64_t dim, std::int64_t charts, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& gamma);
  std::vector<torch::Tensor> weights() const override { return {weight_}; }

 private:
  torch::Tensor weight_;
};
using ChartExpansion = Part<ChartExpansionImpl>;

/// What becomes of the charts where the tokens are mixed.
enum class ChartMixing {
  kSeparate,  ///< each chart mixes its own tokens: Λ_h X_h
  kAverage,   ///< the same, and the mean over the charts is taken by the product: [Λ_1 … Λ_H]/H
  kDense,     ///< every new token is made of the tokens of all charts: one matrix, no charts afterwards
};

/// The 1D convolution of kernel size one whose channels are tokens, grouped by charts or dense.
/// Parameters: `weight` [charts·N, N, 1], or [N, charts·N, 1] where dense; no bias.
/// Shape: [charts, N, M] -> [charts, N, M], or [1, N, M] where averaged or dense.
/// Source: manifold key eq. 3; with the mean, eq. 5.
class TokenMixingImpl : public torch::nn::Module, public WeightOwner {
 public:
  TokenMixingImpl(std::int64_t tokens, std::int64_t charts, ChartMixing mixing,
                  torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& charts);
  std::vector<torch::Tensor> weights() const override { return {weight_}; }

 private:
  const std::int64_t tokens_, charts_;
  const ChartMixing mixing_;
  torch::Tensor weight_;
};
using TokenMixing = Part<TokenMixingImpl>;

struct ManifoldKeyOptions {
  std::int64_t dim = 0;
  std::int64_t tokens = 0;  ///< of one attention window; the weights hold for this number only
  KeyChoice choice;
};

/// Refuses what has no meaning.
/// Throws: c10::ValueError naming the option, its value and what was expected.
void check(const ManifoldKeyOptions& options);

/// The keys of all heads, made in several charts whose tokens are mixed: takes the place of the linear layer
/// that makes K. Γ and γ' start as chosen, the rest as PyTorch starts linear layers and convolutions.
///   X_h = Γ_h ⊙ X W_hᵀ,  Y_h = Λ_h X_h,  Y_h = ½(Y_h + γ' ⊙ mean Y),  K = [Y_1 … Y_H] Oᵀ or mean_h Y_h
/// Parameters: `k.weight`, `gamma`, `spatial.weight`; `gamma_cb` [dim] with broadcasting; `to_out.weight`
/// [dim, charts·dim] in SpatialK and KUA.
/// Shape: x [B, N, dim] -> [B, N, dim].
/// Source: manifold key eq. 2 to 5, Algorithm 1; that SimpleK keeps Γ is a reading.
class ManifoldKeyImpl : public torch::nn::Module {
 public:
  explicit ManifoldKeyImpl(const ManifoldKeyOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

  const ManifoldKeyOptions& options() const { return options_; }

 private:
  torch::Tensor mix_tokens(const torch::Tensor& charts);
  torch::Tensor broadcast_context(const torch::Tensor& charts) const;
  torch::Tensor aggregate(const torch::Tensor& charts);

  const ManifoldKeyOptions options_;
  const Broadcasting broadcasting_;
  ChartExpansion k_{nullptr};
  TokenMixing spatial_{nullptr};
  Linear to_out_{nullptr};  ///< null in SimpleK and VanillaK
  torch::Tensor gamma_, gamma_cb_;
};
using ManifoldKey = Part<ManifoldKeyImpl>;

}  // namespace abl::models
