// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <optional>
#include <vector>

#include "models/choices/embedding.h"
#include "models/layers/layers.h"
#include "models/projection/role_matrices.h"

namespace abl::models {

/// Refuses what has no meaning.
/// Throws: c10::ValueError naming the option, its value and what was expected.
void check(const EmbeddingChoice& choice);

/// What tells query, key and value apart where they share the first layer. Parameter: `code` [3, size].
/// Source: SNE section 4.3.
class CodesImpl : public torch::nn::Module {
 public:
  /// Of the size that `choice` asks for.
  explicit CodesImpl(const EmbeddingChoice& choice, torch::Device device = torch::kCPU);
  torch::Tensor code;
};
using Codes = Part<CodesImpl>;

/// Queries, keys and values as small networks with ReLU between their layers.
///   W⁽²⁾ ReLU(W⁽¹⁾ [x, code] + b⁽¹⁾) + b⁽²⁾
/// Each W and b is one of the role's own or shared by the three; the role's code enters a shared W⁽¹⁾.
/// What they have in common is computed once: x times a shared W⁽¹⁾; layers of their own at one place are one
/// product. For an observer that wants it, it is computed as written.
/// Parameters: `fc1.0.weight`, … by layer, then by role: 0 to 2, or 0 alone where it is shared.
/// Shape: x [B, N, dim] -> [B, N, 3·dim], queries first, then keys, then values.
/// Source: SNE eq. 4 to 6; more than two layers: section 6.1.
class NonLinearQkvImpl : public torch::nn::Module {
 public:
  /// `codes`: of the owner, which registers them; null where the choice has none.
  NonLinearQkvImpl(std::int64_t dim, EmbeddingChoice choice, Codes codes, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Linear layer(std::size_t index, std::size_t role) const;
  torch::Tensor as_written(const torch::Tensor& x);
  torch::Tensor first_layer(const torch::Tensor& x) const;
  torch::Tensor own_layers(std::size_t index, const torch::Tensor& y) const;

  const EmbeddingChoice choice_;
  const Codes codes_;
  std::vector<std::vector<Linear>> layers_;
};
using NonLinearQkv = Part<NonLinearQkvImpl>;

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
  /// With WEIGHT, `proj`; of an embedding WEIGHT alone.
  std::vector<RoleMatrix> role_matrices(const torch::Tensor& proj, std::int64_t heads) const;

 private:
  Linear linear_{nullptr};
  NonLinearQkv embedding_{nullptr};
};

/// Refuses heads that do not divide the width.
/// Throws: c10::ValueError.
void check_heads(std::int64_t dim, std::int64_t heads);

}  // namespace abl::models
