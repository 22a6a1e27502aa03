// SPDX-License-Identifier: Apache-2.0
#include "models/projection/role_matrices.h"

namespace abl::models {

torch::Tensor into_heads(const torch::Tensor& weight, std::int64_t heads) {
  return weight.unflatten(0, {heads, -1}).transpose(1, 2);
}

torch::Tensor out_of_heads(const torch::Tensor& weight, std::int64_t heads) {
  return weight.unflatten(1, {heads, -1}).transpose(0, 1);
}

std::vector<RoleMatrix> fused_role_matrices(const torch::Tensor& qkv, const torch::Tensor& proj,
                                            std::int64_t heads) {
  const auto each = qkv.chunk(3, 0);
  return {{.role = kQuery, .heads = into_heads(each[0], heads)},
          {.role = kKey, .heads = into_heads(each[1], heads)},
          {.role = kValue, .heads = into_heads(each[2], heads)},
          {.role = kWeight, .heads = out_of_heads(proj, heads)}};
}

std::vector<RoleMatrix> keyless_role_matrices(const torch::Tensor& qv, const torch::Tensor& proj,
                                              std::int64_t heads) {
  const auto each = qv.chunk(2, 0);
  return {{.role = kQuery, .heads = into_heads(each[0], heads)},
          {.role = kValue, .heads = into_heads(each[1], heads)},
          {.role = kWeight, .heads = out_of_heads(proj, heads)}};
}

}  // namespace abl::models
