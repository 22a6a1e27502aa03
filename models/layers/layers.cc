// SPDX-License-Identifier: Apache-2.0
#include "models/layers/layers.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/layers/recompute.h"

namespace abl::models {
namespace {

std::int64_t fan_in_of(torch::IntArrayRef shape) {
  std::int64_t product = 1;
  for (const auto size : shape.slice(1)) product *= size;
  return product;
}

/// A trainable tensor, filled by `fill` where it has memory.
template <class Fill>
torch::Tensor new_parameter(torch::IntArrayRef shape, torch::Device device, Fill fill) {
  const torch::NoGradGuard no_grad;
  auto values = torch::empty(shape, torch::device(device));
  if (is_started(device)) fill(values);
  return values.requires_grad_();
}

thread_local bool starts_nothing = false;

}  // namespace

StartNothing::StartNothing() : before_{std::exchange(starts_nothing, true)} {}
StartNothing::~StartNothing() { starts_nothing = before_; }

bool is_started(torch::Device device) { return !device.is_meta() && !starts_nothing; }

void FixedTableImpl::to(torch::Device device, torch::Dtype, bool non_blocking) {
  torch::nn::Module::to(device, non_blocking);
}

void RunningMeanImpl::to(torch::Device device, torch::Dtype, bool non_blocking) {
  torch::nn::Module::to(device, non_blocking);
}

torch::Tensor new_uniform(torch::IntArrayRef shape, std::int64_t fan_in, torch::Device device) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return new_parameter(shape, device, [&](torch::Tensor& values) { values.uniform_(-bound, bound); });
}

torch::Tensor new_weight(torch::IntArrayRef shape, torch::Device device) {
  return new_uniform(shape, fan_in_of(shape), device);
}

torch::Tensor new_constant(torch::IntArrayRef shape, double value, torch::Device device) {
  return new_parameter(shape, device, [&](torch::Tensor& values) { values.fill_(value); });
}

torch::Tensor new_normal(torch::IntArrayRef shape, double deviation, torch::Device device) {
  return new_parameter(shape, device, [&](torch::Tensor& values) { values.normal_(0, deviation); });
}

LinearImpl::LinearImpl(std::int64_t in, std::int64_t out, torch::Device device, bool has_bias) {
  weight = register_parameter("weight", new_weight({out, in}, device));
  if (has_bias) bias = register_parameter("bias", new_uniform({out}, in, device));
}

torch::Tensor LinearImpl::forward(const torch::Tensor& x) { return torch::linear(x, weight, bias); }

void start_linear_layers(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (const auto& part : model.modules(/*include_self=*/false))
    if (auto* linear = part->as<LinearImpl>()) {
      linear->weight.normal_(0, 0.02);
      if (linear->bias.defined()) linear->bias.zero_();
    }
}

LayerNormImpl::LayerNormImpl(std::int64_t dim, torch::Device device, double eps) : eps_{eps} {
  weight = register_parameter("weight", new_constant({dim}, 1, device));
  bias = register_parameter("bias", new_constant({dim}, 0, device));
}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& x) {
  return torch::layer_norm(x, weight.sizes(), weight, bias, eps_);
}

Conv2dImpl::Conv2dImpl(const Conv2dOptions& options, torch::Device device) : options_{options} {
  const auto& [in, out, kernel, stride, padding, groups, has_bias] = options_;
  TORCH_CHECK_VALUE(groups > 0 && in % groups == 0 && out % groups == 0, groups, " groups do not divide the ",
                    in, " and ", out, " channels of a convolution");
  weight = register_parameter("weight", new_weight({out, in / groups, kernel, kernel}, device));
  if (has_bias) bias = register_parameter("bias", new_uniform({out}, fan_in_of(weight.sizes()), device));
}

torch::Tensor Conv2dImpl::convolve(const torch::Tensor& x, const torch::Tensor& weights,
                                   const torch::Tensor& biases) const {
  const auto stride = options_.stride, padding = options_.padding;
  // For both axes: PyTorch accepts one number, but hands on one, where a count of work reads two.
  return torch::conv2d(x, weights, biases, {stride, stride}, {padding, padding}, /*dilation=*/{1, 1},
                       options_.groups);
}

BatchNorm2dImpl::BatchNorm2dImpl(std::int64_t channels, torch::Device device, double eps, double momentum,
                                 bool is_frozen)
    : eps_{eps}, momentum_{momentum}, is_frozen_{is_frozen} {
  weight = new_constant({channels}, 1, device);
  bias = new_constant({channels}, 0, device);
  if (is_frozen_) {
    weight = register_buffer("weight", weight.detach());
    bias = register_buffer("bias", bias.detach());
  } else {
    register_parameter("weight", weight);
    register_parameter("bias", bias);
  }
  running_mean = register_buffer("running_mean", torch::zeros({channels}, torch::device(device)));
  running_var = register_buffer("running_var", torch::ones({channels}, torch::device(device)));
  if (!is_frozen_)
    num_batches_tracked =
        register_buffer("num_batches_tracked", torch::zeros({}, torch::device(device).dtype(torch::kLong)));
}

void BatchNorm2dImpl::to(torch::Device device, torch::Dtype type, bool non_blocking) {
  if (is_frozen_) return torch::nn::Module::to(device, type, non_blocking);
  const auto batches = num_batches_tracked.clone();  // few types hold such a number
  torch::nn::Module::to(device, type, non_blocking);
  num_batches_tracked.set_data(batches.to(device));
}

void BatchNorm2dImpl::to(torch::Dtype type, bool non_blocking) { to(weight.device(), type, non_blocking); }

std::pair<torch::Tensor, torch::Tensor> BatchNorm2dImpl::scale_and_shift() const {
  const auto scale = weight * (running_var + eps_).rsqrt();
  return {scale, bias - running_mean * scale};
}

torch::Tensor BatchNorm2dImpl::forward(const torch::Tensor& x) {
  const bool trains = is_training() && !is_frozen_;
  const auto values = x.numel() / std::max<std::int64_t>(1, x.size(1));  // of each channel
  TORCH_CHECK_VALUE(!trains || x.is_meta() || sum_ || values > 1, "batch normalisation in training over ",
                    values == 1 ? "one value" : "no values", " for each channel (an input of ", x.sizes(),
                    "); a batch of more images, or larger ones, is expected");
  // A block that runs again for its gradients has counted this batch before.
  const bool counts = trains && !recomputing();
  if (counts) num_batches_tracked.add_(1);
  const auto followed = [&](const torch::Tensor& running) {
    return counts || !trains ? running : torch::Tensor{};
  };
  if (trains && sum_)
    return sync_batch_norm(x, {weight, bias, followed(running_mean), followed(running_var)}, momentum_, eps_,
                           sum_);
  return torch::batch_norm(x, weight, bias, followed(running_mean), followed(running_var), trains, momentum_,
                           eps_, /*cudnn_enabled=*/true);
}

}  // namespace abl::models
