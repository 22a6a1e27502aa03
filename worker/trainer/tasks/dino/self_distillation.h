// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/image_source.h"
#include "data/order.h"
#include "images/dino.h"
#include "models/counting/network.h"
#include "models/dino/dino.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/loader.h"
#include "worker/trainer/tasks/making.h"
#include "worker/trainer/tasks/neighbours.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// By default as the release's arguments. Its ViT-S of 800 epochs: a teacher temperature of 0.07 reached in
/// 30 epochs, a last layer whose lengths are learned, 10 local views, areas divided at 0.25.
struct DinoOptions {
  models::DinoHeadOptions head;
  images::MultiCrop views;
  double student_temperature = 0.1;
  double teacher_temperature = 0.04;
  double teacher_temperature_start = 0.04;  ///< of the first epoch
  int teacher_temperature_epochs = 0;       ///< in so many it goes to `teacher_temperature`, one at a time
  double centre_momentum = 0.9;
  double teacher_momentum = 0.996;       ///< of the first step; it goes to 1 along half a cosine over all
  int frozen_epochs = 1;                 ///< the last layer learns after so many
  NeighbourBank bank{.images = 10'000};  ///< of evaluations
};

/// What a trial says of it.
DinoOptions dino_options(const config::TrialConfig& trial);

/// Of which answers are the teacher's features, and a step sees all views of its images.
models::Network dino_network(const config::TrialConfig& trial);

/// Of steps in an epoch. Source: facebookresearch/dino, DINOLoss.
double teacher_temperature(const DinoOptions& options, std::int64_t epoch);
/// Of the teacher after a step, counted from 0. Source: DINO (ICCV 2021), section 3.1.
double teacher_momentum(const DinoOptions& options, std::int64_t step, std::int64_t total_steps);

/// Images describe themselves: a student learns of small views what a teacher says of large ones
/// (models/dino). Labels serve evaluations alone.
///   metrics: those of `judge_by_neighbours`, of the teacher's features
class SelfDistillation final : public Task {
 public:
  /// Opens the data. Throws: Error, as a fault of this machine where it is the place in which they lie.
  SelfDistillation(const config::TrialConfig& trial, DinoOptions options, TaskPlace place);

  const TaskData& data() const override { return data_; }
  std::int64_t evaluated_images() const override { return described_images(set_, options_.bank); }
  std::shared_ptr<torch::nn::Module> new_model() const override;
  void load(const Steps& steps) override;
  bool next() override;
  Work work(torch::nn::Module& model, std::int64_t step, bool halved) override;
  std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) override;
  std::string warning() const override;

 private:
  using ViewsPlan = MakingPlan<images::MultiCropViews>;
  using ViewsInMaking = ItemsInMaking<images::MultiCropViews>;
  ViewsPlan plan_of(std::int64_t step) const;

  const config::TrialConfig& trial_;
  const DinoOptions options_;
  const TaskPlace place_;
  const data::DataSet set_;
  const TaskData data_;
  int evaluations_ = 0;
  double spread_ = 0;  ///< of features in the newest evaluation: feature_std
  const ranks::BatchShare share_;
  const std::unique_ptr<data::EpochOrder> order_;
  const BatchInput input_;
  Steps steps_;
  std::optional<std::vector<images::MultiCropViews>> batch_;
  std::optional<LoaderOf<ViewsInMaking>> loader_;  ///< last: its threads use the rest
};

}  // namespace abl::tasks
