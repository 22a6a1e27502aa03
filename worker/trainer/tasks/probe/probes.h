// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "data/image_source.h"
#include "models/backbones/image_features.h"
#include "models/backbones/model_options.h"
#include "models/counting/network.h"
#include "models/layers/layers.h"
#include "worker/trainer/tasks/classify/classification.h"
#include "worker/trainer/tasks/neighbours.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// A linear layer on the features of a trunk that does not learn: it has no gradients, and stays in
/// evaluation mode. Parameters: `trunk`, `linear`, of which the second learns. It starts normal with
/// deviation 0.01, its bias at 0. Shape: images [B, 3, S, S] -> [B, classes]. Source: facebookresearch/dino,
/// eval_linear.py, LinearClassifier.
class LinearProbeImpl : public models::Classifier {
 public:
  /// Throws: c10::ValueError for a family that gives no `ImageFeatures`.
  LinearProbeImpl(const models::ModelOptions& trunk, const models::FeatureChoice& features,
                  std::int64_t classes, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images) override;
  void train(bool on = true) override;

  torch::nn::Module& trunk() { return *trunk_; }

 private:
  const models::FeatureChoice choice_;
  const std::shared_ptr<models::Classifier> trunk_;
  models::Linear linear_{nullptr};
};

struct LinearProbeOptions {
  models::FeatureChoice features;  ///< DINO: of ViT-S the last 4 blocks, of ViT-B 1 and the patches' mean
  NeighbourBank bank;
};

/// What a trial says of it.
LinearProbeOptions linear_probe_options(const config::TrialConfig& trial);

/// As it is trained.
models::Network linear_probe_network(const config::TrialConfig& trial);

/// What a linear classifier makes of frozen features. Weights of a file (`recipe.start_weights`) are the
/// trunk's; otherwise all is as in classification.
///   metrics: those of classification, and of `judge_by_neighbours`, which is asked once: features stay
/// Source: Caron et al. (ICCV 2021), section 4.1; facebookresearch/dino, eval_linear.py.
class LinearProbe final : public Classification {
 public:
  LinearProbe(const config::TrialConfig& trial, const LinearProbeOptions& options, TaskPlace place);

  std::int64_t evaluated_images() const override {
    return data().val_images + described_images(set(), options_.bank);
  }
  std::shared_ptr<torch::nn::Module> new_model() const override;
  torch::nn::Module& started(torch::nn::Module& model) const override;
  std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) override;

 private:
  const config::TrialConfig& trial_;
  const LinearProbeOptions options_;
  std::optional<std::map<std::string, double>> by_neighbours_;  ///< once asked; of averaged weights too
};

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
