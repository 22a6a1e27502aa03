// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "models/attention/kernel.h"
#include "models/choices/attention.h"
#include "models/layers/layers.h"
#include "models/projection/grouped_linear.h"
#include "models/projection/role_matrices.h"

namespace abl::models {

struct AttentionOptions {
  std::int64_t dim = 0;
  std::int64_t heads = 0;
  std::int64_t dim_head = 64;
  AttentionChoice choice;
};

/// The letters of the matrices that act as grouped projections: QUERY, KEY, VALUE and an inside PROBE.
std::set<char> projections_of(const AttentionChoice& choice);

/// Where the matrix of a role stands among those of QUERY, KEY, VALUE and an inside PROBE, in this order.
FusedPlace fused_place(const AttentionChoice& choice, Role role);

/// The matrices of all roles but an outside PROBE. `matrix`: that of a role as it is stored. `proj`: a WEIGHT
/// of its own; undefined where it is tied.
std::vector<RoleMatrix> role_matrices_of(const AttentionChoice& choice, std::int64_t heads,
                                         const std::function<torch::Tensor(Role)>& matrix,
                                         const torch::Tensor& proj);

/// Whether WEIGHT is the matrix of another role.
bool weight_is_tied(const AttentionChoice& choice);

/// Refuses what has no meaning.
/// Throws: c10::ValueError naming the option, its value and what was expected.
void check(const AttentionOptions& options);

/// Attention between tokens, without the residual: the original transformer's, mean shift's and all that lies
/// between.
///   Σ_h W_h [V_hᵀ X softmax(kernel) - P_hᵀ x],  X and x layer-normalised
/// A matrix is stored once under its letter in `mat`, and a projection that several roles share is computed
/// once. A WEIGHT tied to another role is that role's matrix of ℝ^{dim × heads·dim_head}: the stored tensor,
/// not transposed.
/// Parameters: `norm`; in `mat` QUERY, KEY, VALUE and an inside PROBE [heads·dim_head, dim/groups],
///             an outside PROBE [dim, dim], a WEIGHT of its own [dim, heads·dim_head].
/// Shape: x [B, N, dim] -> [B, N, dim].
/// Source: MSF eq. 1, 12 and 14, section 2.3; sharing: Tables 1 and 2.
class SharedAttentionImpl : public torch::nn::Module, public WeightOwner, public RoleMatrices {
 public:
  explicit SharedAttentionImpl(AttentionOptions options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);
  std::vector<torch::Tensor> weights() const override { return mat->values(); }
  std::vector<RoleMatrix> role_matrices() const override;

  const AttentionOptions& options() const { return options_; }
  LayerNorm norm{nullptr};
  torch::nn::ParameterDict mat{nullptr};

 private:
  const torch::Tensor& matrix(char letter) const;

  const AttentionOptions options_;
  bool weight_is_tied_ = false;
};
using SharedAttention = Part<SharedAttentionImpl>;

}  // namespace abl::models
