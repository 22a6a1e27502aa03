// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <optional>

#include "models/attention/cross_covariance.h"
#include "models/attention/token_attention.h"
#include "models/drop_path.h"
#include "models/local_patch_interaction.h"
#include "models/mlp.h"

namespace abl::models {

/// What the attention of a block runs over.
enum class XcitAttention {
  kChannels,  ///< cross-covariance attention: XCiT's own
  kTokens,    ///< the usual attention
  kNone,      ///< no attention: its branch is left out of the block, with its norm and scale
};

/// The ablated choices of one block, by default XCiT's.
struct XcitChoice {
  XcitAttention attention = XcitAttention::kChannels;
  std::optional<EmbeddingChoice> embedding;  ///< of queries, keys and values; none: one linear layer
  bool l2_norm = true;                       ///< of queries and keys, of attention over channels
  bool learned_temperature = true;           ///< of attention over channels; else it stays as it starts
  double temperature = 1.0;             ///< of attention over channels: factor of the scores, at the start
  bool local_patch_interaction = true;  ///< else its branch is left out, with its norm and scale
};

struct XcitBlockOptions {
  std::int64_t dim = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_dim = 0;
  double eta = 1.0;      ///< where LayerScale starts
  Codes codes{nullptr};  ///< those of the model, where the embedding uses such
  XcitChoice choice;
  double drop_rate = 0;  ///< of each branch
};

/// Refuses what has no meaning.
/// Throws: c10::ValueError naming the option, its value and what was expected.
void check(const XcitChoice& choice);

/// A block of XCiT, in the order of the release.
///   x ← x + γ1 attention(LN1 x),  x ← x + γ3 LPI(LN3 x),  x ← x + γ2 MLP(LN2 x)
/// Parameters: `norm1`, `attn`, `gamma1`, `norm3`, `local_mp`, `gamma3`, `norm2`, `mlp`, `gamma2`.
/// Shape: x [B, rows · columns, dim] -> the same.
/// Source: XCiT section 3.3; what is left out: Table 4.
class XcitBlockImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit XcitBlockImpl(const XcitBlockOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, std::int64_t rows, std::int64_t columns);

 private:
  torch::Tensor drop(const torch::Tensor& branch) const {
    return drop_path(branch, drop_rate_, is_training());
  }
  torch::Tensor attend(const torch::Tensor& x) const {
    return over_tokens_ ? over_tokens_(x) : over_channels_(x);
  }

  const double drop_rate_;
  LayerNorm norm1_{nullptr}, norm3_{nullptr}, norm2_{nullptr};
  CrossCovariance over_channels_{nullptr};  ///< one of the two, or neither
  TokenAttention over_tokens_{nullptr};
  LocalPatchInteraction local_mp_{nullptr};
  Mlp mlp_{nullptr};
  torch::Tensor gamma1_, gamma3_, gamma2_;
};
using XcitBlock = Part<XcitBlockImpl>;

}  // namespace abl::models
