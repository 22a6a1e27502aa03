// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weight_decay.h"

#include <algorithm>
#include <array>

namespace abl::models {
namespace {

/// What follows the last dot.
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

template <std::size_t N>
bool has(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Norms, biases, LayerScale, the manifold key's Γ and γ'. Source: timm's `param_groups_weight_decay`, which
/// XCiT's and DeiT's trainers use, and Swin's `set_weight_decay`: one dimension, or a name that ends in
/// ".bias".
bool is_vector(std::string_view name, const torch::Tensor& parameter) {
  return parameter.dim() <= 1 || last_part(name) == "bias";
}

/// The name that a parameter of the trunk under dense heads has in the model itself.
std::string_view own_name(std::string_view name) {
  constexpr std::string_view kTrunk = "trunk.";
  const auto place = name.rfind(kTrunk);
  return place == name.npos ? name : name.substr(place + kTrunk.size());
}

/// Tokens and positions of the model itself, by their full names. Source: `no_weight_decay` of timm's ViT and
/// of XCiT's release; `cls` and `pos` are the manifold key's, for which there is no release. XCiT's position
/// is not one of them: the names there fit none of its parameters, so the release decays the projection
/// `pos_embed.token_projection.weight`, as it does `temperature`, [heads, 1, 1] (timm's XCiT decays only the
/// latter).
bool is_token_or_position(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"cls_token", "dist_token", "pos_embed", "cls", "pos"};
  return has(kNames, own_name(name));
}

/// Swin's position biases. Source: `no_weight_decay_keywords` of Swin's release, `no_weight_decay` of timm's
/// Swin: the table; of both V2: the network that makes the table, and the temperature of cosine attention.
bool is_position_bias_or_scale(std::string_view name) {
  constexpr std::array<std::string_view, 2> kNames{"relative_position_bias_table", "logit_scale"};
  return has(kNames, last_part(name)) || name.find("cpb_mlp") != name.npos;
}

}  // namespace

std::set<std::string> undecayed(const torch::nn::Module& model) {
  std::set<std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    const auto& name = parameter.key();
    if (is_vector(name, parameter.value()) || is_token_or_position(name) || is_position_bias_or_scale(name))
      names.insert(name);
  }
  return names;
}

bool is_code(std::string_view parameter_name) {
  return parameter_name == "codes.code" || parameter_name.ends_with(".codes.code");
}

}  // namespace abl::models
