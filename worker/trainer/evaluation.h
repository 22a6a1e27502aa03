// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <atomic>
#include <functional>
#include <optional>

#include "config/trial_config.h"
#include "models/classifier.h"
#include "worker/trainer/data/image_source.h"
#include "worker/trainer/ranks/rank_group.h"

namespace abl::trainer {

struct Evaluation {
  double loss = 0;            ///< mean cross entropy, without label smoothing
  double top1 = 0, top5 = 0;  ///< percent
  std::int64_t images = 0;
};

/// Runs the model over a split, every rank over its share; all get the same result. Nothing when the first
/// rank's `stop` was raised on the way. `progress` hears of each batch.
std::optional<Evaluation> evaluate(models::Classifier& model, const ImageSource& images,
                                   const config::TrialConfig& trial, torch::Device device, int loader_threads,
                                   RankGroup& ranks, const std::atomic<bool>& stop,
                                   const std::function<void(std::int64_t images)>& progress = {});

}  // namespace abl::trainer
