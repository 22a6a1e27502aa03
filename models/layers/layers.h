// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <utility>

#include "models/layers/part.h"
#include "models/layers/sync_batch_norm.h"

/// The layers that everything is made of: as PyTorch's, but they can be made on the meta device, where a
/// tensor has a shape and no memory. All start as PyTorch starts them.
namespace abl::models {

/// A trainable tensor as `torch.nn.Linear` and `Conv2d` start theirs: uniform in ±1/√fan-in, fan-in being the
/// product of all dimensions but the first, or as given.
torch::Tensor new_weight(torch::IntArrayRef shape, torch::Device device);
torch::Tensor new_uniform(torch::IntArrayRef shape, std::int64_t fan_in, torch::Device device);
/// A trainable tensor full of one value.
torch::Tensor new_constant(torch::IntArrayRef shape, double value, torch::Device device);
/// A trainable tensor of the normal distribution around 0.
torch::Tensor new_normal(torch::IntArrayRef shape, double deviation, torch::Device device);

/// While one lives, tensors that are made on its thread keep what their memory holds: a copy will fill them,
/// and no random number is drawn.
class StartNothing {
 public:
  StartNothing();
  ~StartNothing();
  StartNothing(const StartNothing&) = delete;
  StartNothing& operator=(const StartNothing&) = delete;

 private:
  const bool before_;
};

/// Whether new tensors on the device get values: not on the meta device, which has no memory.
bool is_started(torch::Device device);

/// A table that follows from a model's options: of indices, of positions. It goes with its model to another
/// device, and stays as it is where the model is cast to another type, so that it is exact after a cast back:
/// who computes with it casts what it takes.
/// Buffers: `table`.
class FixedTableImpl : public torch::nn::Module {
 public:
  explicit FixedTableImpl(torch::Tensor values) { table = register_buffer("table", std::move(values)); }
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype, bool non_blocking = false) override;
  void to(torch::Dtype, bool = false) override {}

  torch::Tensor table;
};
using FixedTable = Part<FixedTableImpl>;

/// A mean that training moves without gradients. Unlike a fixed table it is part of what a checkpoint holds
/// of a model; it keeps its type as well. Buffers: `mean`.
class RunningMeanImpl : public torch::nn::Module {
 public:
  explicit RunningMeanImpl(torch::Tensor start) { mean = register_buffer("mean", std::move(start)); }
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype, bool non_blocking = false) override;
  void to(torch::Dtype, bool = false) override {}

  torch::Tensor mean;
};
using RunningMean = Part<RunningMeanImpl>;

/// y = x Wᵀ + b.
/// Shape: x [..., in] -> [..., out]; weight [out, in], bias [out] (undefined where there is none).
class LinearImpl : public torch::nn::Module, public WeightOwner {
 public:
  LinearImpl(std::int64_t in, std::int64_t out, torch::Device device = torch::kCPU, bool has_bias = true);
  torch::Tensor forward(const torch::Tensor& x);
  std::vector<torch::Tensor> weights() const override { return {weight}; }

  torch::Tensor weight, bias;
};
using Linear = Part<LinearImpl>;

/// Starts every linear layer in `model` as the releases of the vision transformers do: weights normal with
/// deviation 0.02, biases 0.
void start_linear_layers(torch::nn::Module& model);

/// Normalisation over the last dimension.
/// Shape: x [..., dim] -> [..., dim].
class LayerNormImpl : public torch::nn::Module {
 public:
  explicit LayerNormImpl(std::int64_t dim, torch::Device device = torch::kCPU, double eps = 1e-5);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;

 private:
  const double eps_;
};
using LayerNorm = Part<LayerNormImpl>;

struct Conv2dOptions {
  std::int64_t in = 0, out = 0, kernel = 1, stride = 1, padding = 0, groups = 1;
  bool bias = true;
};

/// Shape: x [B, in, H, W] -> [B, out, H', W']; weight [out, in/groups, kernel, kernel].
class Conv2dImpl : public torch::nn::Module, public WeightOwner {
 public:
  explicit Conv2dImpl(const Conv2dOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x) { return convolve(x, weight, bias); }
  /// The same with other numbers.
  torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& weights,
                         const torch::Tensor& biases) const;
  std::vector<torch::Tensor> weights() const override { return {weight}; }

  torch::Tensor weight, bias;

 private:
  const Conv2dOptions options_;
};
using Conv2d = Part<Conv2dImpl>;

/// Normalisation of each channel: by the batch's statistics in training, which the running ones follow, and
/// by the running ones in evaluation. A batch of one value for each channel has no variance: it is refused in
/// training, as PyTorch does; not on the meta device, where memory is predicted and nothing is computed.
/// A frozen one is a scale and a shift by the running statistics in training as well, and learns nothing: its
/// `weight` and `bias` are buffers.
/// Buffers: `running_mean`, `running_var`, `num_batches_tracked`, which stays a whole number in every type;
/// of a frozen one not the last. Shape: x [B, channels, H, W] -> the same. Throws: c10::ValueError where a
/// batch is refused.
class BatchNorm2dImpl : public torch::nn::Module {
 public:
  explicit BatchNorm2dImpl(std::int64_t channels, torch::Device device = torch::kCPU, double eps = 1e-5,
                           double momentum = 0.1, bool is_frozen = false);
  torch::Tensor forward(const torch::Tensor& x);
  /// From now on the batch is that of all processes: see sync_batch_norm.
  void sum_over_ranks(SumOverRanks sum) { sum_ = std::move(sum); }
  const SumOverRanks& sum() const { return sum_; }
  bool is_frozen() const { return is_frozen_; }
  /// What it does by the running statistics: scale · x + shift, [C] each.
  std::pair<torch::Tensor, torch::Tensor> scale_and_shift() const;

  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Dtype type, bool non_blocking = false) override;

  torch::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  const double eps_, momentum_;
  const bool is_frozen_;
  SumOverRanks sum_;
};
using BatchNorm2d = Part<BatchNorm2dImpl>;

}  // namespace abl::models
