// SPDX-License-Identifier: Apache-2.0
#include "models/weights/release_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abl::models {
namespace {

Error refusal(const std::string& name, const torch::Tensor& tensor, const std::string& expected) {
  return Error{Code::kInvalidArgument, fmt::format("{} has shape [{}]; {} expected", name,
                                                   fmt::join(tensor.sizes(), ", "), expected)};
}

/// What follows `prefix` in `name`, if it begins so.
std::optional<std::string> rest_of(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  return name.substr(prefix.size());
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kMsfOutside{
    {{"to_patch_embedding.1.", "embed_norm1."},
     {"to_patch_embedding.2.", "embed."},
     {"to_patch_embedding.3.", "embed_norm2."},
     {"linear_head.0.", "head_norm."},
     {"linear_head.1.", "head."}}};
constexpr std::string_view kMsfLayers = "transformer.layers.";
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kMsfFeedForward{
    {{"net.0.", "norm."}, {"net.1.", "fc1."}, {"net.3.", "fc2."}}};

template <std::size_t N>
std::optional<std::string> renamed(
    const std::string& name, const std::array<std::pair<std::string_view, std::string_view>, N>& prefixes) {
  for (const auto& [theirs, ours] : prefixes)
    if (const auto rest = rest_of(name, theirs)) return std::string{ours} + *rest;
  return {};
}

/// The matrices of the roles. Shape: fused [roles·inner, dim/G] -> each [inner, dim/G], group after group.
std::vector<torch::Tensor> split_roles(const std::string& name, const torch::Tensor& fused,
                                       std::int64_t roles, std::int64_t dim, Layout layout) {
  const bool is_matrix = fused.dim() == 2 && dim > 0 && fused.size(1) > 0 && dim % fused.size(1) == 0;
  const auto groups = is_matrix ? dim / fused.size(1) : 0;
  if (!is_matrix || fused.size(0) == 0 || fused.size(0) % (roles * groups) != 0)
    throw refusal(name, fused, fmt::format("[{} roles, {} / groups] are", roles, dim));
  if (groups > 1 && layout == Layout::kBlock)
    throw Error{Code::kInvalidArgument, name +
                                            " has groups over all projections side by side; the model has "
                                            "them in each projection (fused-block is the release's)"};
  if (layout == Layout::kFusedBlock) return fused.chunk(roles);
  const auto inner = fused.size(0) / roles;
  const auto by_role = fused.view({groups, roles, inner / groups, dim / groups}).transpose(0, 1);
  std::vector<torch::Tensor> matrices;
  for (std::int64_t role = 0; role < roles; ++role)
    matrices.push_back(by_role[role].reshape({inner, dim / groups}));
  return matrices;
}

/// The names of `attn.<layer>.`, where `name` is what follows `transformer.layers.<layer>.0.`.
void add_attention(State& ours, const State& release, const std::string& full_name, const std::string& layer,
                   const std::string& name, const torch::Tensor& tensor, Layout layout) {
  const auto prefix = "attn." + layer + ".";
  if (name == "to_out.weight") {
    ours.emplace(prefix + "mat.W", tensor);
  } else if (name == "to_qkv.weight" || name == "to_qkvp.weight") {
    const auto norm = release.find(fmt::format("{}{}.0.norm.weight", kMsfLayers, layer));
    if (norm == release.end() || norm->second.dim() != 1)
      throw Error{Code::kInvalidArgument, full_name + " has no preceding norm"};
    const std::string_view letters = name == "to_qkv.weight" ? "QKV" : "QKVP";
    const auto matrices = split_roles(full_name, tensor, static_cast<std::int64_t>(letters.size()),
                                      norm->second.size(0), layout);
    for (std::size_t role = 0; role < letters.size(); ++role)
      ours.emplace(fmt::format("{}mat.{}", prefix, letters[role]), matrices[role]);
  } else {
    ours.emplace(prefix + name, tensor);
  }
}

Layout layout_of(const Layouts& layouts, const std::string& layer) {
  const auto found = layouts.find(layer);
  return found == layouts.end() ? Layout::kInterleaved : found->second;
}

}  // namespace

State from_msf_release(const State& release, const Layouts& layouts) {
  State ours;
  for (const auto& [name, tensor] : release) {
    const auto rest = rest_of(name, kMsfLayers);
    if (!rest || rest->find('.') == std::string::npos) {
      ours.emplace(renamed(name, kMsfOutside).value_or(name), tensor);
      continue;
    }
    const auto layer = rest->substr(0, rest->find('.'));
    const auto inside = rest->substr(layer.size() + 1);
    if (const auto attention = rest_of(inside, "0."))
      add_attention(ours, release, name, layer, *attention, tensor, layout_of(layouts, layer));
    else if (const auto feed_forward = rest_of(inside, "1."))
      ours.emplace("ff." + layer + "." + renamed(*feed_forward, kMsfFeedForward).value_or(*feed_forward),
                   tensor);
    else
      ours.emplace(name, tensor);
  }
  return ours;
}

State from_xcit_release(const State& release) {
  constexpr std::string_view kFused = ".attn.qkv.";
  State ours;
  for (const auto& [name, tensor] : release) {
    const auto fused = name.find(kFused);
    if (const auto positions = rest_of(name, "pos_embeder.")) {
      ours.emplace("pos_embed." + *positions, tensor);
    } else if (name.starts_with("cls_attn_blocks.") && fused != std::string::npos) {
      if (tensor.dim() == 0 || tensor.size(0) % 3 != 0)
        throw refusal(name, tensor, "query, key and value are");
      const auto roles = tensor.chunk(3);
      for (std::size_t role = 0; role < 3; ++role)
        ours.emplace(fmt::format("{}.attn.{}.{}", name.substr(0, fused), "qkv"[role],
                                 name.substr(fused + kFused.size())),
                     roles[role]);
    } else {
      ours.emplace(name, tensor);
    }
  }
  return ours;
}

State from_dino(const State& release) {
  State backbone;
  for (const std::string prefix : {"teacher.", ""}) {
    if (!release.contains(prefix + "head.last_layer.weight_v")) continue;
    for (const auto& [name, tensor] : release)
      if (const auto rest = rest_of(name, prefix + "backbone.")) backbone.emplace(*rest, tensor);
    break;
  }
  return backbone;
}

State with_our_names(const State& state, const Layouts& layouts) {
  const auto any = [&state](std::string_view prefix) {
    return std::ranges::any_of(state, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  };
  if (any(kMsfLayers)) return from_msf_release(state, layouts);
  if (any("cls_attn_blocks.")) return from_xcit_release(state);
  return state;
}

}  // namespace abl::models
