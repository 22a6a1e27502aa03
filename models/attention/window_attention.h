// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/attention/kernel.h"
#include "models/attention/manifold_key.h"
#include "models/attention/shared_attention.h"
#include "models/layers/layers.h"

namespace abl::models {

/// The attention of the original: one fused projection to query, key and value.
struct QkvChoice {};

struct WindowAttentionOptions {
  std::int64_t dim = 0;
  std::int64_t heads = 0;              ///< divides `dim`
  std::int64_t window = 0;             ///< side of a window, in tokens
  std::int64_t pretrained_window = 0;  ///< of version 2: the side whose weights these are; 0: `window`

  std::int64_t tokens() const { return window * window; }
};

/// Refuses what has no meaning.
/// Throws: c10::ValueError naming the option, its value and what was expected.
void check(const WindowAttentionOptions& options);

/// Attention between the tokens of each window: what a Swin block asks of it, whatever its kind.
/// Shape: x [B·W, N, dim], mask [W, N, N] added to the scaled logits (undefined: nothing) -> [B·W, N, dim].
class WindowAttentionImpl : public torch::nn::Module, public RoleMatrices {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) = 0;
};
using WindowAttention = Part<WindowAttentionImpl>;

/// Builds one of its kinds.
template <class Kind, class... Arguments>
WindowAttention new_window_attention(Arguments&&... arguments) {
  return std::shared_ptr<WindowAttentionImpl>{std::make_shared<Kind>(std::forward<Arguments>(arguments)...)};
}

/// softmax(scale · kernel(q, k) + bias + mask) v. The bias belongs to a head and the mask to a window;
/// neither is repeated for each image: in fused attention the windows of an image stand beside its heads.
/// Shape: q, k, v [B·W, H, N, w], bias [H, N, N], mask [W, N, N] or undefined -> [B·W, N, H, w of v].
torch::Tensor attend_in_windows(const Operands& operands, const torch::Tensor& bias,
                                const torch::Tensor& mask);

/// As `attend_in_windows` on a GPU. `added`: bias and mask, [1 or W, H, N, N].
torch::Tensor fused_in_windows(const Operands& operands, const torch::Tensor& added);

/// Shape: x [B·W, N, H·d] -> [B·W, H, N, d].
torch::Tensor cut_heads(const torch::Tensor& x, std::int64_t heads);

/// Swin's attention but for its projections: a learned bias for each head and relative position.
/// Parameters: `relative_position_bias_table` [(2·window - 1)², heads]; it starts normal with deviation 0.02.
/// Source: Swin eq. 4.
class BiasedWindowAttentionImpl : public WindowAttentionImpl {
 protected:
  BiasedWindowAttentionImpl(const WindowAttentionOptions& options, torch::Device device);

  /// Shape: q, k, v [B·W, H, N, d] -> [B·W, N, dim].
  torch::Tensor attend(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& mask) const;

  const WindowAttentionOptions options_;

 private:
  torch::Tensor table_;
  FixedTable positions_{nullptr};
};

/// Swin's attention with its one fused projection to query, key and value.
/// Parameters: `qkv`, `proj`, both with bias, and the table.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
class WindowQkvAttentionImpl : public BiasedWindowAttentionImpl {
 public:
  explicit WindowQkvAttentionImpl(const WindowAttentionOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;
  std::vector<RoleMatrix> role_matrices() const override {
    return fused_role_matrices(qkv_->weight, proj_->weight, options_.heads);
  }

 private:
  Linear qkv_{nullptr}, proj_{nullptr};
};

/// Swin's attention with a manifold key in place of the linear one; the tokens that it mixes are those of a
/// window, and all windows share it.
/// Parameters: `qv` (query and value, with bias), `key`, `proj`, the table.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
/// Source: manifold key section 4 in Swin's eq. 4.
class WindowKeyAttentionImpl : public BiasedWindowAttentionImpl {
 public:
  WindowKeyAttentionImpl(const WindowAttentionOptions& options, const KeyChoice& choice,
                         torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;
  std::vector<RoleMatrix> role_matrices() const override {
    return keyless_role_matrices(qv_->weight, proj_->weight, options_.heads);
  }

 private:
  Linear qv_{nullptr}, proj_{nullptr};
  ManifoldKey key_{nullptr};
};

/// The ablated choices of attention inside windows: as `SharedAttention`, with a bias beside each projection
/// and Swin's position bias added to the scaled logits; the Gaussian term stands inside the scale.
///   Σ_h W_h [V_hᵀ X softmax(kernel + bias + mask) - P_hᵀ x]
/// A matrix and its bias are stored once, in `weight` and `bias` under its letter in lower case, and a
/// projection that several roles share is computed once. WEIGHT is `proj`, with bias; a WEIGHT tied to
/// another role is that role's matrix, not transposed, and only its bias `proj_bias` is stored. A PROBE
/// outside has no bias: WEIGHT's would be the same. Matrices start normal with deviation 0.02, biases at 0.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
/// Source: MSF eq. 1, 12 and 14, sections 2.3 and 3.2 (Swin); the place of biases is a reading.
class WindowSharedAttentionImpl : public BiasedWindowAttentionImpl, public WeightOwner {
 public:
  WindowSharedAttentionImpl(const WindowAttentionOptions& options, AttentionChoice choice,
                            torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;

  std::vector<torch::Tensor> weights() const override { return weight->values(); }
  std::vector<RoleMatrix> role_matrices() const override;

  torch::nn::ParameterDict weight{nullptr}, bias{nullptr};

 private:
  const AttentionChoice choice_;
  const bool weight_is_tied_;
  Linear proj_{nullptr};
  torch::Tensor proj_bias_;
};

}  // namespace abl::models
