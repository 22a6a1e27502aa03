// SPDX-License-Identifier: Apache-2.0
#include "models/attention/shared_attention.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace abl::models {
namespace {

/// Letters for four matrices and a PROBE where there is one, WEIGHT on its own unless tied.
void check_share(const AttentionChoice& choice) {
  const std::string_view share = choice.share;
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_probe_or_letter = [&](char c) { return is_letter(c) || c == '-'; };
  TORCH_CHECK_VALUE(
      share.size() == 5 && is_letter(share[kQuery]) && is_letter(share[kKey]) && is_letter(share[kValue]) &&
          is_probe_or_letter(share[kProbe]) && is_letter(share[kWeight]),
      "share is '", share,
      "'; it names the matrices of QUERY, KEY, VALUE, PROBE and WEIGHT by one capital letter each, "
      "with '-' for no PROBE: QKV-W");
  const bool has_probe = share[kProbe] != '-';
  TORCH_CHECK_VALUE(
      has_probe || choice.probe == Probe::kNone, "share is '", share,
      "' and has no PROBE, but a probe is asked for; name its matrix in the fourth place: QKVPW");
  TORCH_CHECK_VALUE(!has_probe || choice.probe != Probe::kNone, "share is '", share,
                    "' and names a matrix for PROBE, but probe is none; put '-' in the fourth place");
  TORCH_CHECK_VALUE(choice.probe != Probe::kOutside || std::ranges::count(share, share[kProbe]) == 1,
                    "share is '", share,
                    "': a PROBE outside WEIGHT is a matrix of its own and cannot be shared");
}

}  // namespace

std::set<char> projections_of(const AttentionChoice& choice) {
  std::set<char> letters{choice.share[kQuery], choice.share[kKey], choice.share[kValue]};
  if (choice.probe == Probe::kInside) letters.insert(choice.share[kProbe]);
  return letters;
}

FusedPlace fused_place(const AttentionChoice& choice, Role role) {
  std::string order;  // of the letters
  for (const auto each : {kQuery, kKey, kValue, kProbe})
    if ((each != kProbe || choice.probe == Probe::kInside) && order.find(choice.share[each]) == order.npos)
      order += choice.share[each];
  return {.index = static_cast<std::int64_t>(order.find(choice.share[role])),
          .count = static_cast<std::int64_t>(order.size())};
}

std::vector<RoleMatrix> role_matrices_of(const AttentionChoice& choice, std::int64_t heads,
                                         const std::function<torch::Tensor(Role)>& matrix,
                                         const torch::Tensor& proj) {
  std::vector<RoleMatrix> matrices;
  for (const auto role : {kQuery, kKey, kValue, kProbe}) {
    if (role == kProbe && choice.probe != Probe::kInside) continue;
    const auto stored = matrix(role);
    const auto one = torch::eye(stored.size(1) * choice.groups, stored.options());
    const auto whole =
        grouped_linear(one, stored, choice.groups, choice.layout, {}, fused_place(choice, role));  // [d, H·d̂]
    matrices.push_back({.role = role, .heads = out_of_heads(whole, heads)});
  }
  const bool is_tied = weight_is_tied(choice);
  matrices.push_back(
      {.role = kWeight, .heads = is_tied ? into_heads(matrix(kWeight), heads) : out_of_heads(proj, heads)});
  return matrices;
}

bool weight_is_tied(const AttentionChoice& choice) {
  return projections_of(choice).contains(choice.share[kWeight]);
}

void check(const AttentionOptions& options) {
  const auto& choice = options.choice;
  const auto inner = options.heads * options.dim_head;
  TORCH_CHECK_VALUE(options.dim > 0 && options.heads > 0 && options.dim_head > 0, "attention of width ",
                    options.dim, " with ", options.heads, " heads of width ", options.dim_head,
                    "; all three must be positive");
  TORCH_CHECK_VALUE(choice.kernel != Kernel::kNone, "kernel is none: leave the attention out of the layer");
  check_share(choice);
  TORCH_CHECK_VALUE(choice.groups >= 1 && options.dim % choice.groups == 0 && inner % choice.groups == 0,
                    choice.groups, " groups do not divide the width ", options.dim, " and the ", inner,
                    " outputs of a projection");
  TORCH_CHECK_VALUE(choice.groups == 1 || !weight_is_tied(choice), "share is '", choice.share, "' with ",
                    choice.groups,
                    " groups: a WEIGHT shared with a projection cannot be grouped; use 1 group");
}

SharedAttentionImpl::SharedAttentionImpl(AttentionOptions options, torch::Device device)
    : options_{std::move(options)} {
  check(options_);
  const auto& choice = options_.choice;
  const auto dim = options_.dim, inner = options_.heads * options_.dim_head;
  weight_is_tied_ = weight_is_tied(choice);
  norm = register_module("norm", LayerNorm{dim, device});
  mat = register_module("mat", torch::nn::ParameterDict{});
  const auto add = [&](char letter, torch::IntArrayRef shape) {
    mat->insert(std::string{letter}, new_weight(shape, device));
  };
  for (const char letter : projections_of(choice)) add(letter, {inner, dim / choice.groups});
  if (choice.probe == Probe::kOutside) add(choice.share[kProbe], {dim, dim});
  if (!weight_is_tied_) add(choice.share[kWeight], {dim, inner});
}

torch::Tensor SharedAttentionImpl::forward(const torch::Tensor& x) {
  const auto& choice = options_.choice;
  const auto B = x.size(0), N = x.size(1), H = options_.heads, d = options_.dim_head;
  const auto normalised = norm(x);

  std::map<char, torch::Tensor> projected;  // once for each matrix, however many roles share it
  const auto projection = [&](Role role) {  // [B, N, H·d]
    auto& y = projected[choice.share[role]];
    if (!y.defined() || literal())
      y = grouped_linear(normalised, matrix(choice.share[role]), choice.groups, choice.layout, {},
                         fused_place(choice, role));
    return y;
  };
  const auto heads_of = [&](Role role) {
    return projection(role).view({B, N, H, d}).transpose(1, 2);  // [B, H, N, d]
  };
  count_scaled(B * H * N * N);

  auto y = attend(choice.kernel, heads_of(kQuery), heads_of(kKey), heads_of(kValue))
               .transpose(1, 2)
               .reshape({B, N, H * d});
  if (choice.probe == Probe::kInside) y = y - projection(kProbe);
  if (weight_is_tied_) {
    y = y.matmul(matrix(choice.share[kWeight]));
    if (choice.tied_weight_scale != 1.0) y = y * choice.tied_weight_scale;
  } else {
    y = torch::linear(y, matrix(choice.share[kWeight]));
  }
  if (choice.probe == Probe::kOutside) y = y - torch::linear(normalised, matrix(choice.share[kProbe]));
  return y;
}

std::vector<RoleMatrix> SharedAttentionImpl::role_matrices() const {
  const auto stored = [&](Role role) { return matrix(options_.choice.share[role]); };
  return role_matrices_of(options_.choice, options_.heads, stored,
                          weight_is_tied_ ? torch::Tensor{} : stored(kWeight));
}

const torch::Tensor& SharedAttentionImpl::matrix(char letter) const { return mat->get(std::string{letter}); }

}  // namespace abl::models
