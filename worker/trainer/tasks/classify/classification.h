// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "data/image_source.h"
#include "data/order.h"
#include "data/transform.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/classify/loss.h"
#include "worker/trainer/tasks/loader.h"
#include "worker/trainer/tasks/task.h"
#include "worker/trainer/tasks/teacher.h"

namespace abl::tasks {

/// Images are recognised as one of the data's classes.
class Classification : public Task {
 public:
  /// Opens the data. Throws: Error, as a fault of this machine where it is the place in which they lie.
  Classification(const config::TrialConfig& trial, TaskPlace place);

  const TaskData& data() const override { return data_; }
  void take(Teacher teacher) override { teacher_ = std::move(teacher); }
  std::shared_ptr<torch::nn::Module> new_model() const override;
  bool recognises() const override { return true; }
  void load(const Steps& steps) override;
  bool next() override;
  Work work(torch::nn::Module& model, std::int64_t step, bool halved) override;
  std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) override;

 protected:
  const data::DataSet& set() const { return set_; }
  const TaskPlace& place() const { return place_; }

 private:
  BatchPlan plan_of(std::int64_t step) const;
  Targets targets_of(const Batch& batch, torch::Tensor& images, std::int64_t step) const;

  const config::TrialConfig& trial_;
  const TaskPlace place_;
  data::DataSet set_;
  TaskData data_;
  ranks::BatchShare share_;
  std::unique_ptr<data::EpochOrder> order_;
  const data::Augmentation augmentation_;
  const BatchInput input_;
  Teacher teacher_;
  std::int64_t steps_of_an_epoch_ = 1;
  std::optional<Batch> batch_;
  std::optional<Loader> loader_;  ///< last: its threads use the rest
};

}  // namespace abl::tasks
