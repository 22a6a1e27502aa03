// SPDX-License-Identifier: Apache-2.0
#include "models/projection/qkv_projection.h"

#include <torch/nn/modules/container/modulelist.h>

#include <string>

namespace abl::models {
namespace {

constexpr std::size_t kRoles = 3, kMostLayers = 4;

std::vector<torch::Tensor> weights_of(const std::vector<Linear>& layers) {
  std::vector<torch::Tensor> weights;
  for (const auto& layer : layers) weights.push_back(layer->weight);
  return weights;
}

std::vector<torch::Tensor> biases_of(const std::vector<Linear>& layers) {
  std::vector<torch::Tensor> biases;
  for (const auto& layer : layers) biases.push_back(layer->bias);
  return biases;
}

}  // namespace

void check(const EmbeddingChoice& choice) {
  const auto layers = choice.shared.size();
  TORCH_CHECK_VALUE(layers >= 1 && layers <= kMostLayers, "shared tells of ", layers,
                    " layers of an embedding; 1 to ", kMostLayers, " are expected");
  TORCH_CHECK_VALUE(choice.widths.size() + 1 == layers, "widths has ", choice.widths.size(),
                    " hidden widths for an embedding of ", layers, " layers; ", layers - 1, " are expected");
  for (const auto width : choice.widths)
    TORCH_CHECK_VALUE(width > 0, "widths has ", width, "; a hidden layer of an embedding is at least 1 wide");
  TORCH_CHECK_VALUE(choice.code_size >= 0, "code_size is ", choice.code_size, "; at least 0 is expected");
  TORCH_CHECK_VALUE(
      !choice.shared.front() || choice.code_size > 0, "code_size is ", choice.code_size,
      " where query, key and value share the first layer: only codes tell them apart there; at least "
      "1 is expected");
  TORCH_CHECK_VALUE(
      choice.shared.front() || choice.code_size == 0, "code_size is ", choice.code_size,
      " where query, key and value have first layers of their own: codes belong to a shared one; 0 is "
      "expected");
  TORCH_CHECK_VALUE(choice.code_deviation >= 0, "code_deviation is ", choice.code_deviation,
                    "; at least 0 is expected");
}

CodesImpl::CodesImpl(const EmbeddingChoice& choice, torch::Device device) {
  code = register_parameter("code", new_normal({kRoles, choice.code_size}, choice.code_deviation, device));
}

NonLinearQkvImpl::NonLinearQkvImpl(std::int64_t dim, EmbeddingChoice choice, Codes codes,
                                   torch::Device device)
    : choice_{std::move(choice)}, codes_{std::move(codes)} {
  check(choice_);
  TORCH_CHECK_VALUE(codes_.is_empty() == (choice_.code_size == 0), "code_size is ", choice_.code_size,
                    codes_ ? " and there are codes" : " and there are no codes",
                    "; both or neither are expected");
  auto in = dim + choice_.code_size;
  for (std::size_t index = 0; index < choice_.shared.size(); ++index) {
    const auto out = index < choice_.widths.size() ? choice_.widths[index] : dim;
    auto list = register_module("fc" + std::to_string(index + 1), torch::nn::ModuleList{});
    auto& layers = layers_.emplace_back();
    for (std::size_t role = 0; role < (choice_.shared[index] ? 1 : kRoles); ++role) {
      layers.emplace_back(in, out, device, choice_.bias);
      list->push_back(layers.back());
    }
    in = out;
  }
}

torch::Tensor NonLinearQkvImpl::forward(const torch::Tensor& x) {
  if (literal()) return as_written(x);
  auto y = first_layer(x);  // [B, N, 3, width]
  for (std::size_t index = 1; index < layers_.size(); ++index) {
    y = torch::relu(y);
    y = choice_.shared[index] ? layer(index, 0)(y) : own_layers(index, y);
  }
  return y.flatten(2);
}

Linear NonLinearQkvImpl::layer(std::size_t index, std::size_t role) const {
  return layers_[index][choice_.shared[index] ? 0 : role];
}

torch::Tensor NonLinearQkvImpl::as_written(const torch::Tensor& x) {
  std::vector<torch::Tensor> roles;
  for (std::size_t role = 0; role < kRoles; ++role) {
    auto y = x;
    if (codes_) {
      const auto code = codes_->code[static_cast<std::int64_t>(role)];
      y = torch::cat({x, code.expand({x.size(0), x.size(1), -1}).to(x.scalar_type())}, -1);
    }
    y = layer(0, role)(y);
    for (std::size_t index = 1; index < layers_.size(); ++index) y = layer(index, role)(torch::relu(y));
    roles.push_back(y);
  }
  return torch::cat(roles, -1);
}

/// W [x, code] = W_x x + W_code code: the first term is the same for all roles, the second for all tokens.
torch::Tensor NonLinearQkvImpl::first_layer(const torch::Tensor& x) const {
  const auto& layers = layers_.front();
  if (codes_) {
    const auto& weight = layers.front()->weight;
    const auto of_tokens = weight.narrow(1, 0, x.size(-1));
    const auto of_codes = weight.narrow(1, x.size(-1), choice_.code_size);
    const auto code = torch::linear(codes_->code, of_codes, layers.front()->bias);  // [3, width]
    return torch::linear(x, of_tokens).unsqueeze(-2) + code;
  }
  const auto bias = choice_.bias ? torch::cat(biases_of(layers)) : torch::Tensor{};
  const auto width = layers.front()->weight.size(0);
  return torch::linear(x, torch::cat(weights_of(layers)), bias).unflatten(-1, {kRoles, width});
}

/// Shape: y [B, N, 3, in] -> [B, N, 3, out].
torch::Tensor NonLinearQkvImpl::own_layers(std::size_t index, const torch::Tensor& y) const {
  const auto& layers = layers_[index];
  const auto weights = torch::stack(weights_of(layers)).mT();  // [3, in, out]
  const auto of_roles = y.flatten(0, 1).transpose(0, 1);       // [3, B·N, in]
  const auto z = choice_.bias
                     ? torch::baddbmm(torch::stack(biases_of(layers)).unsqueeze(1), of_roles, weights)
                     : torch::bmm(of_roles, weights);
  return z.transpose(0, 1).unflatten(0, {y.size(0), y.size(1)});
}

QkvProjection::QkvProjection(torch::nn::Module& owner, const QkvOptions& options, torch::Device device) {
  if (!options.embedding) {
    linear_ = owner.register_module("qkv", Linear{options.dim, 3 * options.dim, device, options.bias});
    return;
  }
  const auto& choice = *options.embedding;
  check(choice);
  Codes codes{nullptr};
  if (choice.code_size > 0)
    codes = choice.codes_over_blocks ? options.codes : owner.register_module("codes", Codes{choice, device});
  embedding_ = owner.register_module("qkv", NonLinearQkv{options.dim, choice, codes, device});
}

std::vector<RoleMatrix> QkvProjection::role_matrices(const torch::Tensor& proj, std::int64_t heads) const {
  if (linear_) return fused_role_matrices(linear_->weight, proj, heads);
  return {{.role = kWeight, .heads = out_of_heads(proj, heads)}};
}

void check_heads(std::int64_t dim, std::int64_t heads) {
  TORCH_CHECK_VALUE(dim > 0 && heads > 0 && dim % heads == 0, "heads is ", heads, "; a divisor of the width ",
                    dim, " is expected");
}

}  // namespace abl::models
