// SPDX-License-Identifier: Apache-2.0
#include "models/layers/sync_batch_norm.h"

#include <torch/autograd.h>
#include <torch/custom_class.h>
#include <torch/utils.h>

#include "models/layers/layers.h"

namespace abl::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const std::vector<std::int64_t> kButChannels{0, 2, 3};

Tensor of_channels(const Tensor& x) { return x.view({1, -1, 1, 1}); }

struct Statistics {
  Tensor mean, var;  ///< [C], of all processes' batches
  Tensor count;      ///< [1]: values of a channel; a tensor, so that nothing waits for the device
};

/// In double precision: the sum of squares is that of values that may lie far from 0.
Statistics statistics_of(const Tensor& x, const SumOverRanks& sum) {
  const torch::NoGradGuard no_grad;
  const auto [own_var, own_mean] = torch::var_mean(x.to(torch::kFloat32), kButChannels, /*unbiased=*/false);
  const auto var = own_var.to(torch::kFloat64), mean = own_mean.to(torch::kFloat64);
  const auto count = static_cast<double>(x.numel() / x.size(1));
  auto sums =
      torch::cat({torch::full({1}, count, mean.options()), mean * count, (var + mean.square()) * count});
  sum(sums);
  const auto C = x.size(1);
  const auto all = sums.narrow(0, 0, 1);
  // only a process with so little waits for the device; where there are two with a value each, both pass
  TORCH_CHECK_VALUE(count > 1 || all.item<double>() > 1,
                    "batch normalisation in training over one value for each channel, of all processes; a "
                    "batch of more images, or larger ones, is expected");
  const auto all_mean = sums.narrow(0, 1, C) / all;
  const auto all_var = (sums.narrow(0, 1 + C, C) / all - all_mean.square()).clamp_min(0);
  return {.mean = all_mean.to(torch::kFloat32),
          .var = all_var.to(torch::kFloat32),
          .count = all.to(torch::kFloat32)};
}

/// As PyTorch follows them: the variance as that of a sample.
void follow(const Statistics& statistics, const BatchNormTensors& tensors, double momentum) {
  if (!tensors.running_mean.defined()) return;
  const torch::NoGradGuard no_grad;
  const auto& [mean, var, count] = statistics;
  auto [running_mean, running_var] = std::tie(tensors.running_mean, tensors.running_var);
  running_mean.lerp_(mean, momentum);
  running_var.lerp_(var * count / (count - 1), momentum);
}

struct Across : torch::CustomClassHolder {
  explicit Across(SumOverRanks over) : sum{std::move(over)} {}
  const SumOverRanks sum;
};

struct Normalise : torch::autograd::Function<Normalise> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Statistics& statistics, double eps, const SumOverRanks& sum) {
    const auto& [mean, var, count] = statistics;
    context->save_for_backward({x, weight, mean, (var + eps).rsqrt(), count});
    context->saved_data["across"] = c10::IValue::make_capsule(c10::make_intrusive<Across>(sum));
    return torch::batch_norm(x, weight, bias, mean, var, /*training=*/false, /*momentum=*/0, eps,
                             /*cudnn_enabled=*/true);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &mean = saved[2], &scale = saved[3], &count = saved[4];
    const auto across = c10::static_intrusive_pointer_cast<Across>(context->saved_data["across"].toCapsule());
    const auto dy = gradients[0].to(torch::kFloat32);
    const auto x_hat = (x.to(torch::kFloat32) - of_channels(mean)) * of_channels(scale);
    const auto own = torch::stack({dy.sum(kButChannels), (dy * x_hat).sum(kButChannels)});  // [2, C]
    auto means = own.clone();
    across->sum(means);
    means /= count;
    const auto dx =
        of_channels(weight * scale) * (dy - of_channels(means[0]) - x_hat * of_channels(means[1]));
    return {dx.to(x.scalar_type()), own[1], own[0], Tensor{}, Tensor{}, Tensor{}};
  }
};

}  // namespace

Tensor sync_batch_norm(const Tensor& x, const BatchNormTensors& tensors, double momentum, double eps,
                       const SumOverRanks& sum) {
  const auto statistics = statistics_of(x, sum);
  follow(statistics, tensors, momentum);
  return Normalise::apply(x, tensors.weight, tensors.bias, statistics, eps, sum);
}

void synchronise_batch_norms(torch::nn::Module& model, const SumOverRanks& sum) {
  for (const auto& part : model.modules(/*include_self=*/false))
    if (auto* norm = part->as<BatchNorm2dImpl>()) norm->sum_over_ranks(sum);
}

}  // namespace abl::models
