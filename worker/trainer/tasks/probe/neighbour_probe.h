// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/image_source.h"
#include "models/counting/network.h"
#include "worker/trainer/tasks/neighbours.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// Of which answers are the features. Nothing is trained.
models::Network neighbour_probe_network(const config::TrialConfig& trial);

/// How well the nearest neighbours of frozen features tell classes apart. Nothing learns.
///   metrics: those of `judge_by_neighbours`
class NeighbourProbe final : public Task {
 public:
  /// Opens the data. Throws: Error, as a fault of this machine where it is the place in which they lie.
  NeighbourProbe(const config::TrialConfig& trial, const NeighbourBank& bank, TaskPlace place);

  const TaskData& data() const override { return data_; }
  std::int64_t evaluated_images() const override { return described_images(set_, bank_); }
  std::shared_ptr<torch::nn::Module> new_model() const override;
  bool learns() const override { return false; }
  void load(const Steps&) override {}
  bool next() override { return false; }
  Work work(torch::nn::Module&, std::int64_t, bool) override { return {}; }
  std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) override;

 private:
  const config::TrialConfig& trial_;
  const NeighbourBank bank_;
  const TaskPlace place_;
  const data::DataSet set_;
  const TaskData data_;
};

}  // namespace abl::tasks
