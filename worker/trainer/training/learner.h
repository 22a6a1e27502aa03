// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/trial_config.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/ranks/gradient_mean.h"
#include "worker/trainer/tasks/task.h"
#include "worker/trainer/training/mixed_precision.h"
#include "worker/trainer/training/optimiser.h"
#include "worker/trainer/training/step_graph.h"
#include "worker/trainer/training/weight_average.h"

namespace abl::training {

/// The type of the weights that a model computes with. Half precision has too narrow a range for them: it
/// goes by autocast.
torch::ScalarType type_of_weights(const config::RecipeConfig& recipe);

/// A model that learns, batch by batch, with all that its recipe keeps beside the weights: the optimiser's
/// state, the running average, the factor of the loss. What it adds up stays on the device: reading it would
/// wait.
class Learner {
 public:
  /// `average`: built as `model`, where the recipe has a running average; otherwise null. `graph`: that steps
  /// are recorded into; null: kernel by kernel.
  Learner(std::shared_ptr<torch::nn::Module> model, std::shared_ptr<torch::nn::Module> average,
          const config::RecipeConfig& recipe, torch::Device device,
          std::shared_ptr<ranks::RankGroup> ranks = std::make_shared<ranks::RankGroup>(),
          std::unique_ptr<StepGraph> graph = nullptr);

  /// One optimiser step at learning rate `lr`, from this rank's work of the batch, part by part.
  void step(const tasks::Work& work, double lr, const std::vector<ranks::BatchShare::Part>& parts);
  /// The same for a rank alone, all images at once.
  void step(const tasks::Work& work, double lr) { step(work, lr, {{.first = 0, .size = work.images}}); }

  /// From the next step on; until it is said, by the recipe's weight_decay.
  void decay_by(double weight_decay) { optimiser_->decay_by(weight_decay); }

  /// Gives every rank what the first one has.
  void agree(ranks::RankGroup& ranks);

  torch::nn::Module& model() { return *model_; }
  /// The running average, or null.
  torch::nn::Module* average() { return average_ ? &average_->model() : nullptr; }

  /// Of the images since it was set: the sum of their losses, and how many were recognised. [], float64.
  torch::Tensor& loss_sum() { return loss_sum_; }
  torch::Tensor& correct() { return correct_; }
  /// And the steps since both were set before the first whose loss was not finite: that is one to find
  /// without a look at each. [], float64.
  torch::Tensor& finite_steps() { return finite_steps_; }
  /// Of the steps since it was set: the sum of the 2-norms of all gradients, before they are clipped, where
  /// these are finite; how many these steps are; how many steps half precision left out. [3], float64.
  torch::Tensor& gradients_sum() { return gradients_sum_; }
  /// Whether steps may be left out.
  bool skips_steps() const { return scaler_.has_value(); }

  /// All that a checkpoint needs, by name: "model.NAME", "adamw.first.NAME", "ema.NAME", … They share memory.
  std::map<std::string, torch::Tensor> state() const;
  /// Throws: Error when something is missing or has another shape.
  void load(const std::map<std::string, torch::Tensor>& state);

 private:
  using Parts = std::vector<ranks::BatchShare::Part>;
  void take_step(const tasks::Work& work, const tasks::Work::Inputs& inputs, const Parts& parts);
  void add_gradients(const tasks::PartLoss& loss, const ranks::BatchShare::Part& part, bool for_all_ranks);

  void drop_gradients(const std::set<std::string>& names);
  void clip(const torch::Tensor& norm);
  void note(const torch::Tensor& norm, const torch::Tensor& overflow);

  const config::RecipeConfig& recipe_;
  const std::shared_ptr<torch::nn::Module> model_;
  MasterWeights weights_;
  ranks::GradientMean gradients_;
  const std::unique_ptr<Optimiser> optimiser_;
  std::optional<WeightAverage> average_;
  std::optional<LossScaler> scaler_;        ///< with half precision
  const std::unique_ptr<StepGraph> graph_;  ///< or null
  torch::Tensor lr_, loss_sum_, correct_, finite_steps_, gradients_sum_;
};

}  // namespace abl::training
