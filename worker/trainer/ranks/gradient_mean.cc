// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/gradient_mean.h"

#include <torch/utils.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>
#include <utility>

namespace abl::ranks {
namespace {

using c10d::Reducer;
using Indices = std::vector<std::vector<std::size_t>>;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Names = std::unordered_map<std::size_t, std::string>;
using Limits = std::vector<std::int64_t>;

/// Last first: gradients come in about that order.
std::vector<torch::Tensor> trained(const torch::nn::Module& model) {
  std::vector<torch::Tensor> parameters;
  for (const auto& parameter : model.parameters())
    if (parameter.requires_grad()) parameters.push_back(parameter);
  std::ranges::reverse(parameters);
  return parameters;
}

Indices cut(const std::vector<torch::Tensor>& parameters) {
  return std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, {c10d::kDefaultFirstBucketBytes, c10d::kDefaultBucketBytesCap}));
}

/// In buckets that travel as one message each.
std::vector<std::vector<torch::Tensor>> cut_evenly(const std::vector<torch::Tensor>& tensors) {
  std::vector<std::vector<torch::Tensor>> buckets;
  std::size_t bytes = c10d::kDefaultBucketBytesCap;
  for (const auto& tensor : tensors) {
    if (bytes >= c10d::kDefaultBucketBytesCap) buckets.emplace_back(), bytes = 0;
    buckets.back().push_back(tensor);
    bytes += tensor.nbytes();
  }
  return buckets;
}

/// PyTorch 2.13 has a further argument, without a default. A template, so that the other call is not looked
/// at.
template <class Made>
std::unique_ptr<Made> make_reducer(const std::vector<torch::Tensor>& parameters, const Group& group) {
  const std::vector<bool> is_sparse(parameters.size(), false);
  constexpr bool find_unused_parameters = false, gradient_as_bucket_view = true;
  constexpr std::int64_t most = c10d::kDefaultBucketBytesCap, most_in_first = c10d::kDefaultFirstBucketBytes;
  if constexpr (std::is_constructible_v<Made, std::vector<torch::Tensor>, Indices, Group, std::vector<bool>,
                                        std::int64_t, bool, bool, Names, std::int64_t, bool, bool, Limits>)
    return std::make_unique<Made>(parameters, cut(parameters), group, is_sparse, most, find_unused_parameters,
                                  gradient_as_bucket_view, Names{}, most_in_first,
                                  /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
                                  Limits{});
  else
    return std::make_unique<Made>(parameters, cut(parameters), group, is_sparse, most, find_unused_parameters,
                                  gradient_as_bucket_view, Names{}, most_in_first,
                                  /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false);
}

}  // namespace

struct GradientMean::Buckets {
  const std::vector<torch::Tensor> parameters;
  std::unique_ptr<Reducer> reducer;  ///< null before the end of the first step
};

GradientMean::GradientMean(const torch::nn::Module& model, std::shared_ptr<RankGroup> ranks)
    : ranks_{std::move(ranks)} {
  if (!ranks_->alone()) buckets_ = std::make_unique<Buckets>(Buckets{trained(model), nullptr});
}

GradientMean::~GradientMean() = default;

void GradientMean::backward(const torch::Tensor& loss, bool last) {
  if (!buckets_ || !last) return loss.backward();
  auto& [parameters, reducer] = *buckets_;
  reach_ranks([&] {
    // Its first backward pass shows which parameters have a gradient, and how often it is added to: that must
    // be one pass, so the parts of the first step before the last one come before it is there.
    const bool learns = !reducer;
    if (learns) {
      reducer = make_reducer<Reducer>(parameters, ranks_->process_group());
      reducer->set_static_graph();
      // Left to itself it would cut the buckets anew, in the order in which gradients came in its second
      // step: another one after a resume. Now they are cut for good.
      reducer->push_rebuilt_params_for_all_indices();
      reducer->rebuild_buckets();
    }
    reducer->prepare_for_forward();
    reducer->prepare_for_backward({loss});
    loss.backward();
    if (learns) reducer->delay_all_reduce();
  });
}

void GradientMean::average(const std::vector<torch::Tensor>& gradients) {
  if (ranks_->alone()) return;
  const torch::NoGradGuard no_grad;
  for (const auto& bucket : cut_evenly(gradients)) {
    std::vector<torch::Tensor> flat;
    for (const auto& gradient : bucket) flat.push_back(gradient.reshape(-1));
    auto whole = torch::cat(flat);
    ranks_->sum(whole);
    whole.div_(ranks_->ranks());
    std::int64_t begin = 0;
    for (const auto& gradient : bucket) {
      gradient.copy_(whole.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      begin += gradient.numel();
    }
  }
}

}  // namespace abl::ranks
