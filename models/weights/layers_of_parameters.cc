// SPDX-License-Identifier: Apache-2.0
#include "models/weights/layers_of_parameters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace abl::models {
namespace {

/// Where a parameter stands: what comes earlier is less. A stem {0}, a block {1, number} or {1, stage,
/// number}, of class attention {2, number}, what goes with the last block {1 or 2, kLast}, and the head.
using Place = std::vector<int>;
constexpr int kLast = std::numeric_limits<int>::max() - 1;
const Place kHead{std::numeric_limits<int>::max()};

constexpr std::array<std::string_view, 14> kStems{
    "cls_token", "dist_token",  "pos_embed",   "patch_embed", "conv_stem", "bn1", "conv1",
    "stem",      "embed_norm1", "embed_norm2", "embed",       "cls",       "pos", "codes"};
constexpr std::array<std::string_view, 4> kBehindTheLast{"norm", "head_norm", "conv_head", "bn2"};
constexpr std::array<std::string_view, 4> kBlocks{"blocks", "layers", "attn", "ff"};

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != name.npos; name.remove_prefix(std::min(end + 1, name.size()))) {
    end = name.find('.');
    parts.push_back(name.substr(0, end));
  }
  return parts;
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "layer3" is 3 for "layer".
std::optional<int> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return number(text.substr(prefix.size()));
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

/// Below segmenters and detectors, what is trained there by the name that it has in a classifier. Other parts
/// of them have none that is known below: they are of the head.
std::string_view below_heads(std::string_view name) {
  if (!name.starts_with("backbone.")) return name;
  for (const std::string_view folder : {"backbone.", "body.", "trunk."})
    if (name.starts_with(folder)) name.remove_prefix(folder.size());
  return name;
}

Place place_of(std::string_view name) {
  const auto parts = parts_of(below_heads(name));
  const auto part = [&](std::size_t i) { return i < parts.size() ? parts[i] : std::string_view{}; };
  if (is_one_of(part(0), kStems)) return {0};
  if (part(0) == "cls_attn_blocks") return {2, number(part(1)).value_or(0)};
  if (const auto block = number(part(1)); block && is_one_of(part(0), kBlocks)) {
    if (part(2) == "downsample") return {1, *block, 0};                  // Swin
    if (const auto inner = number(part(2))) return {1, *block, *inner};  // EfficientNet
    if (const auto inner = number(part(3)); inner && part(2) == "blocks") return {1, *block, *inner};
    return {1, *block};
  }
  if (const auto stage = number_after(part(0), "layer")) return {1, *stage, number(part(1)).value_or(0)};
  if (const auto stage = number_after(part(0), "s"))
    return {1, *stage, number_after(part(1), "b").value_or(0)};
  if (is_one_of(part(0), kBehindTheLast)) return {1, kLast};
  return kHead;
}

}  // namespace

std::map<std::string, int> layers_of_parameters(const torch::nn::Module& model) {
  std::map<std::string, Place> places;
  for (const auto& parameter : model.named_parameters())
    places.emplace(parameter.key(), place_of(parameter.key()));
  std::map<Place, int> layers;
  for (const auto& [name, place] : places) layers.emplace(place, 0);
  // what goes with the last block goes with that of class attention where there is one
  const bool has_class_blocks = layers.lower_bound({2}) != layers.lower_bound({3});
  int layer = -1, last_block = 0;
  for (auto& [place, number] : layers) {
    if (place == Place{1, kLast}) continue;
    number = ++layer;
    if (place != kHead && (place.front() == 2 || (place.front() == 1 && !has_class_blocks)))
      last_block = layer;
  }
  if (const auto found = layers.find({1, kLast}); found != layers.end()) found->second = last_block;
  std::map<std::string, int> of_parameters;
  for (const auto& [name, place] : places) of_parameters.emplace(name, layers.at(place));
  return of_parameters;
}

}  // namespace abl::models
