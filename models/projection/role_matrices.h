// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string_view>
#include <vector>

#include "models/choices/attention.h"

namespace abl::models {

constexpr std::string_view name_of(Role role) {
  switch (role) {
    case kQuery:
      return "query";
    case kKey:
      return "key";
    case kValue:
      return "value";
    case kProbe:
      return "probe";
    case kWeight:
      return "weight";
  }
  return {};
}

/// The matrix of a role in each head, as MSF writes it: a token x of width d becomes Xᵀ x, and of WEIGHT what
/// a head found, y, becomes X y.
struct RoleMatrix {
  Role role = kQuery;
  torch::Tensor heads;  ///< [H, d, d̂]
};

/// An attention that has such matrices says so: what looks at projections asks for them.
/// Source: MSF eq. 1 and 12.
class RoleMatrices {
 public:
  virtual ~RoleMatrices() = default;
  /// In the order of the roles. A role is left out that is no such matrix: a key by way of charts, an
  /// embedding that is not linear, a PROBE that is one for all heads. Roles that share a matrix have it each.
  virtual std::vector<RoleMatrix> role_matrices() const = 0;
};

/// Of a linear layer into the heads. Shape: weight [H·d̂, d] -> [H, d, d̂].
torch::Tensor into_heads(const torch::Tensor& weight, std::int64_t heads);

/// Of one out of them. Shape: weight [d, H·d̂] -> [H, d, d̂].
torch::Tensor out_of_heads(const torch::Tensor& weight, std::int64_t heads);

/// Of one linear layer to queries, keys and values, in this order. Shape: weight [3·dim, dim].
std::vector<RoleMatrix> fused_role_matrices(const torch::Tensor& qkv, const torch::Tensor& proj,
                                            std::int64_t heads);

/// Of one linear layer to queries and values. Shape: weight [2·dim, dim].
std::vector<RoleMatrix> keyless_role_matrices(const torch::Tensor& qv, const torch::Tensor& proj,
                                              std::int64_t heads);

}  // namespace abl::models
