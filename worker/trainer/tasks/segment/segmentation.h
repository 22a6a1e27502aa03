// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/annotated/annotated_source.h"
#include "data/order.h"
#include "images/mmsegmentation.h"
#include "models/counting/network.h"
#include "models/dense/segmentation/segmenter.h"
#include "models/dense/trunk_maps.h"
#include "scoring/segmentation.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/dense/pictures.h"
#include "worker/trainer/tasks/loader.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

struct SegmentationOptions {
  models::SegmenterOptions segmenter;
  models::TrunkMapsOptions maps;
  images::SegmentationRecipe view;  ///< of a picture in training
  int evaluated_side = 0;  ///< shorter side of a picture in evaluation, at most four times that; 0: its own
  std::int64_t multiple = 1;  ///< to which pictures and windows are filled up in evaluation
  int window = 0;             ///< side of the windows in evaluation, at two thirds of it; 0: whole pictures
};

/// Of a trial whose task it is.
SegmentationOptions segmentation_options(const config::TrialConfig& trial);
models::Network segmentation_network(const config::TrialConfig& trial);

/// Every pixel is recognised as one of the data's labels.
///   metrics: loss, miou (mean over the classes that are there), macc (their accuracy), aacc (of all pixels),
///   in percent but the loss
class Segmentation final : public Task {
 public:
  /// `set`: with labels of pixels.
  Segmentation(const config::TrialConfig& trial, SegmentationOptions options, data::AnnotatedSet set,
               TaskPlace place);

  const TaskData& data() const override { return data_; }
  std::shared_ptr<torch::nn::Module> new_model() const override;
  void load(const Steps& steps) override;
  bool next() override;
  Work work(torch::nn::Module& model, std::int64_t step, bool halved) override;
  /// Every picture, scored at its own size.
  std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) override;
  /// Four pictures beside their labels and what was told, and the scores of each class.
  std::optional<probes::Findings> predictions() override { return std::move(predictions_); }

 private:
  PicturePlan plan_of(std::int64_t step) const;
  images::Annotated evaluated(images::Annotated picture) const;
  torch::Tensor logits(models::SegmenterImpl& segmenter, const torch::Tensor& images) const;
  void show(std::int64_t number, const images::Annotated& picture, std::vector<std::uint8_t> told);
  scoring::ConfusionMatrix summed(const scoring::ConfusionMatrix& own) const;

  const config::TrialConfig& trial_;
  const SegmentationOptions options_;
  const data::AnnotatedSet set_;
  const TaskPlace place_;
  const TaskData data_;
  const ranks::BatchShare share_;
  const std::unique_ptr<data::EpochOrder> order_;
  const BatchInput input_;
  std::optional<probes::Findings> predictions_;  ///< of the newest evaluation
  std::int64_t steps_of_an_epoch_ = 1;
  std::optional<std::vector<images::Annotated>> batch_;
  std::optional<LoaderOf<PicturesInMaking>> loader_;  ///< last: its threads use the rest
};

}  // namespace abl::tasks
