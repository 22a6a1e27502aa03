// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "config/trial_config.h"
#include "data/image_source.h"
#include "models/backbones/classifier.h"
#include "worker/trainer/ranks/rank_group.h"

namespace abl::tasks {

struct Evaluation {
  double loss = 0;            ///< mean cross entropy, without label smoothing
  double top1 = 0, top5 = 0;  ///< percent
  std::int64_t images = 0;

  /// By their names as metrics: {split}/loss, …
  std::map<std::string, double> values(const std::string& split) const;
};

/// Throws: Error{kAborted} naming the first value that is not finite: nothing was learned that could be
/// measured. `where`: ends the sentence ("at step 7").
void expect_finite(const std::map<std::string, double>& values, const std::string& where);

/// Runs the model over a split, every rank over its share; all get the same result. A batch goes through the
/// model in as many parts as in training (recipe.accumulate), so that no more memory is needed. Nothing when
/// the first rank's `stop` was raised on the way. `progress` hears of each batch.
std::optional<Evaluation> evaluate(models::Classifier& model, const data::ImageSource& images,
                                   const config::TrialConfig& trial, torch::Device device, int loader_threads,
                                   ranks::RankGroup& ranks, const std::atomic<bool>& stop,
                                   const std::function<void(std::int64_t images)>& progress = {});

}  // namespace abl::tasks
