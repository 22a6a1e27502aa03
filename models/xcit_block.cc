// SPDX-License-Identifier: Apache-2.0
#include "models/xcit_block.h"

namespace abl::models {

void check(const XcitChoice& choice) {
  const bool over_channels = choice.attention == XcitAttention::kChannels;
  TORCH_CHECK_VALUE(
      over_channels || choice.l2_norm,
      "l2_norm is off in a block without attention over channels, the only one that has it; leave it on");
  TORCH_CHECK_VALUE(
      over_channels || (choice.learned_temperature && choice.temperature == 1.0), "temperature is ",
      choice.temperature, choice.learned_temperature ? "" : ", fixed,",
      " in a block without attention over channels, the only one that has it; leave it as it is");
  TORCH_CHECK_VALUE(choice.attention != XcitAttention::kNone || !choice.embedding,
                    "embedding is given for a block without attention; leave it out");
  if (choice.embedding) check(*choice.embedding);
}

XcitBlockImpl::XcitBlockImpl(const XcitBlockOptions& options, torch::Device device)
    : drop_rate_{options.drop_rate} {
  const auto& choice = options.choice;
  check(choice);
  const auto norm = [&](const char* name) {
    return register_module(name, LayerNorm{options.dim, device, /*eps=*/1e-6});
  };
  const auto scale = [&](const char* name) {
    return register_parameter(name, new_constant({options.dim}, options.eta, device));
  };
  const QkvOptions qkv{.dim = options.dim, .embedding = choice.embedding, .codes = options.codes};

  if (choice.attention != XcitAttention::kNone) {
    norm1_ = norm("norm1");
    if (choice.attention == XcitAttention::kTokens)
      over_tokens_ = register_module("attn", TokenAttention{qkv, options.heads, device});
    else
      over_channels_ = register_module(
          "attn", CrossCovariance{CrossCovarianceOptions{.qkv = qkv,
                                                         .heads = options.heads,
                                                         .l2_norm = choice.l2_norm,
                                                         .learned_temperature = choice.learned_temperature,
                                                         .temperature = choice.temperature},
                                  device});
    gamma1_ = scale("gamma1");
  }
  if (choice.local_patch_interaction) {
    norm3_ = norm("norm3");
    local_mp_ = register_module("local_mp", LocalPatchInteraction{options.dim, device});
    gamma3_ = scale("gamma3");
  }
  norm2_ = norm("norm2");
  mlp_ = register_module("mlp", Mlp{options.dim, options.mlp_dim, device});
  gamma2_ = scale("gamma2");
}

torch::Tensor XcitBlockImpl::forward(const torch::Tensor& x, std::int64_t rows, std::int64_t columns) {
  auto y = x;
  if (norm1_) y = add_residual(y, drop(gamma1_ * attend(norm1_(y))));
  if (norm3_) y = add_residual(y, drop(gamma3_ * local_mp_(norm3_(y), rows, columns)));
  return add_residual(y, drop(gamma2_ * mlp_(norm2_(y))));
}

}  // namespace abl::models
