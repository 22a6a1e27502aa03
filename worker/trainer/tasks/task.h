// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/trial_config.h"
#include "probes/probe.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/ranks/rank_group.h"
#include "worker/trainer/tasks/teacher.h"

namespace abl::tasks {

/// What a part of a batch has come to.
struct PartLoss {
  torch::Tensor mean;       ///< []: over its images, what is learned from
  torch::Tensor correct{};  ///< []: how many of them were recognised; undefined where nothing is
};

/// The work of a step: this rank's images of a batch, with what is wanted of them, on the device.
struct Work {
  using Inputs = std::vector<torch::Tensor>;
  std::int64_t images = 0;
  /// All that differs from step to step, where a step may be recorded as a graph and done again with other
  /// numbers in these; undefined ones are absent. Empty: it may not.
  Inputs inputs{};
  /// The loss of `count` images from `first` on. Given other inputs of the same shapes, of those.
  std::function<PartLoss(const Inputs& inputs, std::int64_t first, std::int64_t count)> loss;
  std::set<std::string> frozen{};  ///< names of the parameters that this step leaves as they are
  /// What is to be done once the weights have moved, as the end of the step: gets the model's state in full
  /// precision (`models::state_of`). Empty: nothing.
  std::function<void(const std::map<std::string, torch::Tensor>& weights)> after{};
};

/// Both splits of a trial's data, as they were opened.
struct TaskData {
  std::uint32_t train_images = 0, val_images = 0;
  std::string fingerprint;
  std::vector<std::string> passed_over;  ///< what is there and not used, a sentence each
};

/// Where a task runs.
struct TaskPlace {
  std::string data_root;   ///< empty: embedded data
  bool stands_in = false;  ///< data that nobody has are stood in for: it is only timed
  torch::Device device = torch::kCPU;
  int loader_threads = 1;
  std::shared_ptr<ranks::RankGroup> ranks = std::make_shared<ranks::RankGroup>();
};

/// This rank's share of each step.
/// Throws: Error{kInvalidArgument} when a rank would have no image in a part.
ranks::BatchShare share_of(const config::RecipeConfig& recipe, const TaskData& data,
                           const ranks::RankGroup& ranks);

/// What a trial trains for: what a batch is, what is learned from it, and how a model is judged. Thread: one.
class Task {
 public:
  virtual ~Task() = default;

  virtual const TaskData& data() const = 0;
  /// That an evaluation shows to the model; a later one may need fewer.
  virtual std::int64_t evaluated_images() const { return data().val_images; }
  /// The network that learns, drawn anew on the CPU; `average`: one that follows it.
  virtual std::shared_ptr<torch::nn::Module> new_model() const = 0;
  /// Whom steps learn from beside what is known of the data. Of a task that learns from nobody, never called.
  virtual void take(Teacher teacher) { static_cast<void>(teacher); }
  /// Of such a model the part whose weights a file may hold (`recipe.start_weights`).
  virtual torch::nn::Module& started(torch::nn::Module& model) const { return model; }
  /// Whether a step says how many of its images were recognised.
  virtual bool recognises() const { return false; }
  /// Whether there is anything to learn. Where there is not, a training is one step without a batch, of which
  /// nothing comes but its evaluation; `load`, `next` and `work` are not called.
  virtual bool learns() const { return true; }

  /// Batches of the steps from `first` on, until `last`, are made from here on, in the background.
  struct Steps {
    std::int64_t first = 0, last = 0;
    std::int64_t of_an_epoch = 1;
    std::int64_t in_all = 0;  ///< of the whole training, whatever part of it is loaded
  };
  virtual void load(const Steps& steps) = 0;
  /// Waits for the next batch; false after the last. Throws what making it threw.
  virtual bool next() = 0;
  /// Its work for a model of `new_model`, as step `step`, counted from 0. The batch stays until `next`.
  /// `halved`: half of the images, for measurements.
  virtual Work work(torch::nn::Module& model, std::int64_t step, bool halved = false) = 0;

  /// The metrics of a model over the validation images, by their names after the split's. Every rank looks at
  /// its share and all get the same. Nothing when the first rank's `stop` was raised on the way. `progress`
  /// hears of so many images more.
  virtual std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) = 0;
  /// What the newest evaluation was like, beyond its metrics: some fixed images with what was told of them,
  /// scores of each class. Of the first rank. Nothing where there is no more to say.
  virtual std::optional<probes::Findings> predictions() { return std::nullopt; }
  /// What the newest evaluation shows to be wrong, in words for the log. Empty where nothing is.
  virtual std::string warning() const { return {}; }
};

}  // namespace abl::tasks
