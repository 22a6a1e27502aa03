// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "worker/trainer/ranks/rank_group.h"

namespace abl::ranks {

/// Backward passes whose gradients are the means over all ranks. They travel while the pass still runs (in
/// the first step after it: that one shows which parameters have a gradient, and how often it is added to
/// where blocks are recomputed). Buckets are cut in the order of the parameters, the same in every run: a
/// resumed run adds up in the same order. A parameter that the loss does not depend on keeps no gradient;
/// which ones these are must not change. For a rank alone these are plain backward passes. Thread: one.
class GradientMean {
 public:
  /// All ranks: the same model, with the same weights.
  GradientMean(const torch::nn::Module& model, std::shared_ptr<RankGroup> ranks);
  ~GradientMean();
  GradientMean(const GradientMean&) = delete;
  GradientMean& operator=(const GradientMean&) = delete;

  /// `last`: of the step. The parts of a batch before the last one only add to this rank's own gradients;
  /// after the last one the sums are the same on all ranks.
  void backward(const torch::Tensor& loss, bool last);
  /// Makes gradients that this rank added up elsewhere the means over all ranks, after the last part: the
  /// same tensors on each, in the same order. None of the step's `backward` must have been its last.
  void average(const std::vector<torch::Tensor>& gradients);

 private:
  struct Buckets;
  const std::shared_ptr<RankGroup> ranks_;
  std::unique_ptr<Buckets> buckets_;  ///< null for a rank alone
};

}  // namespace abl::ranks
