// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weights.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "models/attention/shared_attention.h"
#include "models/embedding/positions.h"
#include "models/layers/type_name.h"
#include "models/weights/resize.h"
#include "models/weights/state.h"

namespace abl::models {
namespace {

constexpr std::array<std::string_view, 5> kHeads{"head.", "head_dist.", "head.fc.", "fc.", "classifier."};
constexpr std::array<std::string_view, 2> kPositions{"pos_embed", "pos"};
constexpr std::string_view kKernel = "patch_embed.proj.weight";  // of a class-token ViT or Swin
constexpr std::string_view kBiases = ".relative_position_bias_table";
// Buffers that older Swin checkpoints hold, computed from the window and the size of the image.
constexpr std::array<std::string_view, 3> kComputed{".relative_position_index", ".relative_coords_table",
                                                    ".attn_mask"};
constexpr std::string_view kConvolutions = "patch_embed.proj.";

bool is_head(const std::string& name) {
  return std::ranges::any_of(kHeads, [&](std::string_view head) {
    return name == fmt::format("{}weight", head) || name == fmt::format("{}bias", head);
  });
}

/// Whether two tensors of a head differ in nothing but the number of classes.
bool differ_in_classes(const torch::Tensor& a, const torch::Tensor& b) {
  return a.dim() == b.dim() && a.dim() > 0 && a.size(0) != b.size(0) &&
         a.sizes().slice(1) == b.sizes().slice(1);
}

/// Leaves the model's own head where the given one is missing or of other classes, as a whole. One that a
/// model without a classifier is given is left out.
void keep_head(State& given, const State& own, LoadedWeights& loaded) {
  State head;
  for (const auto& [name, tensor] : own)
    if (is_head(name)) head.emplace(name, tensor);
  const bool is_other = std::ranges::all_of(head, [&given](const auto& entry) {
    const auto found = given.find(entry.first);
    return found == given.end() || differ_in_classes(found->second, entry.second);
  });
  if (head.empty()) std::erase_if(given, [](const auto& entry) { return is_head(entry.first); });
  if (!is_other) return;
  for (const auto& [name, tensor] : head) {
    given.insert_or_assign(name, tensor);
    loaded.fresh.push_back(name);
  }
}

std::int64_t side_of(std::int64_t places) { return std::llround(std::sqrt(static_cast<double>(places))); }

/// Of a table of positions: how many there are beside those of the largest square map in it. Those of a model
/// are of its class token and its distillation token; it has one, both, or none.
std::int64_t leading(std::int64_t places) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(places)));
  return places - side * side;
}

/// A learned table of positions [1, leading + S·S, dim] in the size of the model's.
torch::Tensor fitted_positions(const torch::Tensor& given, const torch::Tensor& own) {
  const auto extra = leading(own.size(1));
  if (given.dim() == 3 && given.size(1) > extra && leading(given.size(1) - extra) != 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} positions; without the {} of leading tokens (class, distillation) that the "
                            "model has, they are of no square map",
                            given.size(1), extra)};
  const auto side = side_of(own.size(1) - extra);
  return interpolate_positions(given, side, side, extra);
}

bool is_computed(const std::string& name) {
  return std::ranges::any_of(kComputed, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// A tensor in the size that the model has; nothing where the options do not say that it may have another.
std::optional<torch::Tensor> resized(const std::string& name, const torch::Tensor& given,
                                     const torch::Tensor& own, const WeightsOptions& options) {
  if (options.resize_positions && std::ranges::find(kPositions, name) != kPositions.end())
    return fitted_positions(given, own);
  if (options.resize_positions && name.ends_with(kBiases))
    return interpolate_bias_table(given, (side_of(own.size(0)) + 1) / 2);
  if (options.other_patch && name == kKernel && given.dim() == 4 && own.dim() == 4)
    return resample_patches(given, own.size(2));
  return std::nullopt;
}

void resize(State& given, const State& own, const WeightsOptions& options, LoadedWeights& loaded) {
  for (auto& [name, tensor] : given) {
    const auto mine = own.find(name);
    if (mine == own.end() || tensor.sizes() == mine->second.sizes()) continue;
    try {
      if (const auto fitting = resized(name, tensor, mine->second, options)) {
        tensor = *fitting;
        loaded.resized.push_back(name);
      }
    } catch (const c10::Error& error) {
      throw Error{Code::kInvalidArgument, name + ": " + error.what_without_backtrace()};
    } catch (const Error& error) {
      throw Error{error.code(), fmt::format("{}: {}", name, error.what())};
    }
  }
}

/// The number behind `patch_embed.proj.` in the name of one of XCiT's convolutions: 0, 2, 4, …
std::optional<std::int64_t> convolution_of(const std::string& name) {
  if (!name.starts_with(kConvolutions) || name.size() < kConvolutions.size() + 2) return {};
  const auto rest = name.substr(kConvolutions.size());
  if (rest[0] < '0' || rest[0] > '9' || rest[1] != '.') return {};
  return rest[0] - '0';
}

std::int64_t last_convolution(const State& state) {
  std::int64_t last = -1;
  for (const auto& [name, tensor] : state) last = std::max(last, convolution_of(name).value_or(-1));
  return last;
}

/// Gives the convolutions of another patch the numbers that they have in the model. Counted from the end they
/// are the same, but for the first of the smaller patch, which sees pixels.
void renumber_convolutions(State& given, const State& own, LoadedWeights& loaded) {
  const auto more = last_convolution(given) - last_convolution(own);
  if (more == 0 || last_convolution(given) < 0 || last_convolution(own) < 0) return;
  State taken;
  for (const auto& [name, tensor] : own)
    if (const auto index = convolution_of(name)) {
      const auto rest = name.substr(kConvolutions.size() + 1);
      const auto source = given.find(fmt::format("{}{}{}", kConvolutions, *index + more, rest));
      const bool sees_pixels = *index == 0 || *index + more <= 0;
      if (!sees_pixels && source != given.end()) {
        taken.emplace(name, source->second);
      } else if (sees_pixels) {
        taken.emplace(name, tensor);
        loaded.fresh.push_back(name);
      }
    }
  std::erase_if(given, [](const auto& entry) { return convolution_of(entry.first).has_value(); });
  given.merge(taken);
}

/// Numbers for numbers, counts for counts: an integer is no weight.
void check_kinds(const State& given, const State& own) {
  std::string problems;
  for (const auto& [name, tensor] : given)
    if (const auto found = own.find(name);
        found != own.end() && found->second.is_floating_point() != tensor.is_floating_point())
      problems += fmt::format("{}{} has type {}; the model expects {}", problems.empty() ? "" : "\n", name,
                              type_name(tensor.scalar_type()), type_name(found->second.scalar_type()));
  if (!problems.empty()) throw Error{Code::kInvalidArgument, problems};
}

/// Finite in the model's type: float64 holds 1e300, float32 does not.
void check_finite(const State& given, const State& own) {
  std::string problems;
  for (const auto& [name, tensor] : given) {
    const auto found = own.find(name);
    if (found == own.end() || !tensor.is_floating_point()) continue;
    const auto type = found->second.scalar_type();
    if (!tensor.to(type).isfinite().all().item<bool>())
      problems += fmt::format("{}{} has values that are not finite as {}", problems.empty() ? "" : "\n", name,
                              type_name(type));
  }
  if (!problems.empty()) throw Error{Code::kInvalidArgument, problems};
}

/// Of the groups of a simple ViT's attention.
Layouts layouts_of(const torch::nn::Module& model) {
  constexpr std::string_view kAttention = "attn.";
  Layouts layouts;
  for (const auto& part : model.named_modules())
    if (const auto* attention = part.value()->as<SharedAttentionImpl>();
        attention && part.key().starts_with(kAttention))
      layouts.emplace(part.key().substr(kAttention.size()), attention->options().choice.layout);
  return layouts;
}

}  // namespace

namespace {

/// Those of PyTorch's data parallelism and of its compiler, and what trainers call a model that is a part of
/// something larger.
constexpr std::array<std::string_view, 3> kWrappers{"module.", "_orig_mod.", "model."};

bool all_begin_with(const State& state, std::string_view prefix) {
  return !state.empty() &&
         std::ranges::all_of(state, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

/// Takes away what wrappers, one in another, put before every name. Returns: that.
std::string unwrap(State& state, const State& own) {
  std::string taken;
  const auto is_around = [&](std::string_view prefix) {
    return all_begin_with(state, prefix) && !all_begin_with(own, prefix);
  };
  for (auto wrapper = std::ranges::find_if(kWrappers, is_around); wrapper != kWrappers.end();
       wrapper = std::ranges::find_if(kWrappers, is_around)) {
    State inner;
    for (const auto& [name, tensor] : state) inner.emplace(name.substr(wrapper->size()), tensor);
    state = std::move(inner);
    taken += *wrapper;
  }
  return taken;
}

}  // namespace

LoadedWeights load_weights(torch::nn::Module& model, const State& state, const WeightsOptions& options) {
  const torch::NoGradGuard no_grad;
  const auto own = state_of(model);
  auto bare = state;
  LoadedWeights loaded{.prefix = unwrap(bare, own), .fresh = {}, .resized = {}};
  const bool is_network = std::ranges::any_of(
      own, [](const auto& entry) { return entry.first.ends_with("head.last_layer.weight_v"); });
  if (auto backbone = from_dino(bare); !backbone.empty() && !is_network) bare = std::move(backbone);
  auto given = with_our_names(bare, layouts_of(model));
  std::erase_if(given, [](const auto& entry) { return is_computed(entry.first); });
  if (options.other_patch) renumber_convolutions(given, own, loaded);
  if (options.fresh_head) keep_head(given, own, loaded);
  resize(given, own, options, loaded);
  check_kinds(given, own);
  check_finite(given, own);
  load_state(model, given);
  return loaded;
}

}  // namespace abl::models
