// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "config/trial_config.h"
#include "data/image_source.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// Among which images neighbours are looked for.
struct NeighbourBank {
  std::int64_t images = 0;  ///< of training, the first so many of a fixed shuffle; 0: all
};

/// So many images are described for that: those of the bank and those that are judged.
std::int64_t described_images(const data::DataSet& set, const NeighbourBank& bank);

/// Judges features by k nearest neighbours, which vote for their class: nothing is learned. Images are shown
/// as in an evaluation, training images too; features are compared by their cosine.
///   metrics: knn10, knn20 (k; of fewer images all), feature_std (√D times the mean over channels of the
///   deviation of features at length 1)
/// All features of the bank are held at once, in float32.
/// `backbone`: an `ImageFeatures`; in evaluation mode when this returns. Every rank describes its share and
/// all get the same. Nothing when the first rank's `stop` was raised on the way. `progress` hears of so many
/// images more, of both splits. Source: Caron et al. (ICCV 2021), section 3.2; facebookresearch/dino,
/// eval_knn.py (temperature 0.07).
std::optional<std::map<std::string, double>> judge_by_neighbours(
    torch::nn::Module& backbone, const data::DataSet& set, const NeighbourBank& bank,
    const config::TrialConfig& trial, const TaskPlace& place, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress);

/// The same under the names that they have of a split: "val/knn20".
std::map<std::string, double> of_split(const std::string& split, const std::map<std::string, double>& values);

}  // namespace abl::tasks
