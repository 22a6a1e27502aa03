// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/projection/qkv_projection.h"
#include "probes/probe.h"

namespace abl::probes {

/// ‖C_q‖, ‖C_k‖, ‖C_v‖, and the dot products of the codes after each was brought to length 1. Where blocks
/// have codes of their own, the values are means over the blocks. A code of length 0 has products of 0.
/// Source: SNE section 6.3, Table 6 and Figure 4.
Findings code_norms(const Subject& subject, const protocol::ProbeRequest&) {
  std::vector<std::string> owners;
  std::vector<torch::Tensor> all;
  for (const auto& part : subject.model.named_modules("", /*include_self=*/false))
    if (const auto* codes = part.value()->as<models::CodesImpl>()) {
      owners.push_back(part.key());
      all.push_back(codes->code.detach().to(torch::kCPU, torch::kDouble));
    }
  if (all.empty())
    throw Error{Code::kFailedPrecondition,
                "code-norms: the model has no codes; they belong to an embedding whose first layer is shared "
                "(model.embedding.kind: f-sne)"};
  std::vector<torch::Tensor> norms, products;  // blocks may have codes of different sizes
  for (const auto& code : all) {
    norms.push_back(torch::linalg_vector_norm(code, 2, /*dim=*/{1}));
    const auto unit = code / norms.back().unsqueeze(1).clamp_min(1e-300);
    products.push_back(unit.matmul(unit.t()));
  }
  const auto norm = torch::stack(norms), product = torch::stack(products);  // [owners, 3], [owners, 3, 3]
  const auto mean_norm = norm.mean(0), mean_product = product.mean(0);
  const std::vector<std::string> roles{"query", "key", "value"};
  Findings findings;
  for (std::size_t x = 0; x < roles.size(); ++x) {
    const auto at = static_cast<std::int64_t>(x);
    findings.values[roles[x]] = mean_norm[at].item<double>();
    for (std::size_t y = x + 1; y < roles.size(); ++y)
      findings.values[roles[x] + "-" + roles[y]] =
          mean_product[at][static_cast<std::int64_t>(y)].item<double>();
  }
  const Axis owner{.name = "codes", .places = owners}, role{.name = "role", .places = roles};
  findings.arrays["norm"] = {.axes = {owner, role}, .values = norm};
  findings.arrays["product"] = {.axes = {owner, role, {.name = "other role", .places = roles}},
                                .values = product};
  return findings;
}

}  // namespace abl::probes
