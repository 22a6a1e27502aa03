// SPDX-License-Identifier: Apache-2.0
#include "models/counting.h"

#include <set>

#include "models/layers.h"
#include "models/registry.h"

namespace abl::models {
namespace {

/// The tensors that the MSF paper counts, told by the module that owns them.
std::set<const void*> weights_of(const torch::nn::Module& model) {
  std::set<const void*> weights;
  for (const auto& module : model.modules()) {
    if (const auto* linear = module->as<LinearImpl>()) weights.insert(linear->weight.unsafeGetTensorImpl());
    if (const auto* attention = module->as<SharedAttentionImpl>())
      for (const auto& matrix : attention->mat->values()) weights.insert(matrix.unsafeGetTensorImpl());
  }
  return weights;
}

/// Work of one layer's attention branch; nothing where the layer has none.
/// Source: MSF Table 6 as it prints; residual additions and scaled scores cost only in `flops_msf`.
void add_attention(const SimpleVitOptions& options, const AttentionChoice& choice, Counts& counts) {
  if (choice.kernel == Kernel::kNone) return;
  const auto n = options.tokens(), d = options.dim, inner = options.heads * options.dim_head;
  const auto projections = choice.probe == Probe::kInside ? 4 : 3;
  counts.macs += n * (projections * inner * d / choice.groups + inner * d);  // projections and WEIGHT
  counts.macs += 2 * n * n * inner;  // scores, then their sum of values
  if (choice.probe == Probe::kOutside) counts.macs += n * d * d;
  counts.flops_msf += n * d + 2 * options.heads * n * n;
}

}  // namespace

std::vector<ParameterEntry> list_parameters(const torch::nn::Module& model) {
  const auto weights = weights_of(model);
  std::vector<ParameterEntry> entries;
  for (const auto& parameter : model.named_parameters()) {
    const auto& tensor = parameter.value();
    entries.push_back({.name = parameter.key(),
                       .shape = tensor.sizes().vec(),
                       .elements = tensor.numel(),
                       .is_weight = weights.contains(tensor.unsafeGetTensorImpl())});
  }
  return entries;
}

Counts count(const SimpleVitOptions& options) {
  Counts counts;
  for (const auto& entry : list_parameters(*build(options, torch::kMeta))) {
    counts.params_all += entry.elements;
    if (entry.is_weight) counts.params_weights += entry.elements;
  }
  const auto n = options.tokens(), d = options.dim;
  counts.macs = n * 3 * options.patch * options.patch * d + d * options.classes;  // patch embedding and head
  for (const auto& choice : options.attention) {
    add_attention(options, choice, counts);
    counts.macs += n * 2 * d * options.mlp_dim;
    counts.flops_msf += n * d;
  }
  counts.flops_msf += 2 * counts.macs;
  return counts;
}

}  // namespace abl::models
