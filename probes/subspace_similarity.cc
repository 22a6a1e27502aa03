// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "models/projection/role_matrices.h"
#include "probes/probe.h"

namespace abl::probes {
namespace {

constexpr std::int64_t kRoles = models::kWeight + 1;

/// The space that each head's matrix of a role spans.
struct Spaces {
  torch::Tensor basis;      ///< [H, d, min(d, w)]: orthonormal columns; zeros in place of those beyond `rank`
  torch::Tensor rank;       ///< [H]
  std::int64_t widest = 0;  ///< min(d, w): the rank of a matrix none of whose directions is lost
};

/// Of matrices [H, d, w].
Spaces spaces_of(const torch::Tensor& matrices) {
  const auto [U, singular, V] = torch::linalg_svd(matrices.to(torch::kDouble), /*full_matrices=*/false);
  const auto size = static_cast<double>(std::max(matrices.size(1), matrices.size(2)));
  const auto least = singular.amax(-1, /*keepdim=*/true) * size * std::numeric_limits<float>::epsilon();
  const auto spanned = singular.gt(least).to(torch::kDouble);
  return {.basis = U * spanned.unsqueeze(-2), .rank = spanned.sum(-1), .widest = singular.size(-1)};
}

/// What one layer's heads have.
struct Layer {
  torch::Tensor similarities;  ///< [H, roles, roles]; NaN where it lacks a role, or a matrix is zero
  std::int64_t lacking = 0;    ///< matrices that span fewer directions than they could
};

Layer look_at(const std::vector<models::RoleMatrix>& matrices) {
  std::vector<std::optional<Spaces>> spaces(kRoles);
  Layer layer;
  for (const auto& [role, heads] : matrices) {
    const auto& found = spaces[role].emplace(spaces_of(heads.cpu()));
    layer.lacking += found.rank.lt(static_cast<double>(found.widest)).sum().item<std::int64_t>();
  }
  const auto H = matrices.front().heads.size(0);
  layer.similarities =
      torch::full({H, kRoles, kRoles}, std::numeric_limits<double>::quiet_NaN(), torch::kDouble);
  for (std::int64_t x = 0; x < kRoles; ++x)
    for (std::int64_t y = x; y < kRoles; ++y) {
      const auto &X = spaces[static_cast<std::size_t>(x)], &Y = spaces[static_cast<std::size_t>(y)];
      if (!X || !Y) continue;
      const auto cosines = X->basis.mT().matmul(Y->basis);  // after their singular value decomposition
      const auto similarity =
          cosines.square().sum({-2, -1}) / torch::minimum(X->rank, Y->rank);  // 0 / 0: none
      layer.similarities.select(1, x).select(1, y).copy_(similarity);
      layer.similarities.select(1, y).select(1, x).copy_(similarity);
    }
  return layer;
}

}  // namespace

/// sim(X, Y) = (1/d̂) Σ_r cos² θ_r of the canonical angles between the spaces that two projections of one head
/// span: 1 where they are the same, about d̂/d where they have nothing to do with each other. For every layer
/// whose projections are matrices, every head and every pair of roles; the values are means over all of them.
/// Roles that share a matrix have 1. Source: MSF eq. 13, Figure 3, whose spaces all have d̂ dimensions. Of a
/// matrix that spans fewer, d̂ is the number of angles that there are, the smaller of the two dimensions.
Findings subspace_similarity(const Subject& subject, const protocol::ProbeRequest&) {
  std::vector<std::string> layers;
  std::vector<torch::Tensor> found;
  std::int64_t most_heads = 0, lacking = 0, all_matrices = 0;
  for (const auto& part : subject.model.named_modules("", /*include_self=*/false)) {
    const auto* attention = dynamic_cast<const models::RoleMatrices*>(part.value().get());
    if (!attention) continue;
    const auto matrices = attention->role_matrices();
    if (matrices.size() < 2) continue;  // of an embedding that is not linear WEIGHT is left, and no pair
    layers.push_back(part.key());
    const auto layer = look_at(matrices);
    found.push_back(layer.similarities);
    most_heads = std::max(most_heads, found.back().size(0));
    lacking += layer.lacking,
        all_matrices += found.back().size(0) * static_cast<std::int64_t>(matrices.size());
  }
  if (found.empty())
    throw Error{Code::kFailedPrecondition,
                "subspace-similarity: the model has no attention with projection matrices"};
  const auto none = std::numeric_limits<double>::quiet_NaN();
  Findings findings;
  if (lacking > 0)
    findings.notes.push_back(
        fmt::format("{} of {} matrices span fewer directions than they have columns: their similarity is the "
                    "mean over the directions that they span",
                    lacking, all_matrices));
  std::vector<torch::Tensor> filled;  // a stage of fewer heads has none in the other places
  for (const auto& layer : found)
    filled.push_back(torch::constant_pad_nd(layer, {0, 0, 0, 0, 0, most_heads - layer.size(0)}, none));
  const auto all = torch::stack(filled);  // [layers, heads, roles, roles]
  const auto mean = all.flatten(0, 1).nanmean(/*dim=*/0);
  std::vector<std::string> roles;
  for (std::int64_t role = 0; role < kRoles; ++role)
    roles.emplace_back(name_of(static_cast<models::Role>(role)));
  for (std::int64_t x = 0; x < kRoles; ++x)
    for (std::int64_t y = x + 1; y < kRoles; ++y)
      if (const auto value = mean[x][y].item<double>(); value == value)
        findings.values[roles[static_cast<std::size_t>(x)] + "-" + roles[static_cast<std::size_t>(y)]] =
            value;
  const Axis of{.name = "role", .places = roles}, with{.name = "other role", .places = roles};
  findings.arrays["mean"] = {.axes = {of, with}, .values = mean};
  findings.arrays["similarity"] = {.axes = {{.name = "layer", .places = layers},
                                            {.name = "head", .places = counted(most_heads)},
                                            of,
                                            with},
                                   .values = all};
  return findings;
}

}  // namespace abl::probes
