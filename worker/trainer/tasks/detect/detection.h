// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "data/annotated/annotated_source.h"
#include "images/detectron2.h"
#include "images/detr.h"
#include "models/counting/network.h"
#include "models/dense/mask_rcnn/mask_rcnn.h"
#include "models/dense/trunk_maps.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/dense/pictures.h"
#include "worker/trainer/tasks/detect/coco_scoring.h"
#include "worker/trainer/tasks/detect/detection_batch.h"
#include "worker/trainer/tasks/loader.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// How large a picture is shown in an evaluation, as `images::size_by_shorter` has it.
struct EvaluationSize {
  int shorter = 0;  ///< 0: in the picture's own size
  int longest = 0;  ///< 0: no bound
};

struct DetectionOptions {
  models::MaskRcnnOptions detector;  ///< of as many classes as the data have categories
  models::TrunkMapsOptions maps;
  /// Of a picture in training. With MultiScale, pictures that lie and pictures that stand share no batch, but
  /// for one of an epoch at most.
  std::variant<images::LargeScaleJitter, images::MultiScale> view;
  EvaluationSize evaluation;
};

/// Of a trial whose task it is.
DetectionOptions detection_options(const config::TrialConfig& trial);
/// Counted with as many regions as proposals of an evaluation, and as many masks as detections; a step with
/// those that its losses count.
models::Network detection_network(const config::TrialConfig& trial);

/// Things are found: their boxes, classes and masks.
///   metrics: COCO's average precision of boxes and masks, in percent (coco_scoring.h)
///
/// Crowds are not learned. Which boxes the losses count depends on the seed, the step and the image's place
/// in the whole batch alone.
///
/// The loss of a part is torchvision's: those of classes, boxes, objectness and proposals are divided by the
/// number of boxes of the part that are counted, that of masks by the number of those that are of things.
/// Parts weigh as many images as they have, so the former add up to the loss of the whole batch where all
/// images have as many counted boxes (as all do that have `sample.count` anchors and proposals to choose
/// from), and that of masks where as many of these are of things. Otherwise an image with few of them weighs
/// more in a part than in the whole batch, as it does in torchvision on several GPUs. Each rank pads to the
/// largest of its own pictures; those of all ranks are not known to it.
class Detection final : public Task {
 public:
  /// `set`: with instances and their masks.
  /// Throws: Error{kInvalidArgument} for another number of classes than the data have.
  Detection(const config::TrialConfig& trial, DetectionOptions options, data::AnnotatedSet set,
            TaskPlace place);

  const TaskData& data() const override { return data_; }
  std::shared_ptr<torch::nn::Module> new_model() const override;
  void load(const Steps& steps) override;
  bool next() override;
  Work work(torch::nn::Module& model, std::int64_t step, bool halved) override;
  /// One picture at a time.
  std::optional<std::map<std::string, double>> evaluate(
      torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
      const std::function<void(std::int64_t images)>& progress) override;

  /// Four pictures with what is in them and what was found, and the scores of each category.
  std::optional<probes::Findings> predictions() override { return std::move(predictions_); }

 private:
  PicturePlan plan_of(std::int64_t step);
  std::optional<images::Annotated> shown(std::uint32_t index) const;
  PictureMatches judged(models::MaskRcnnImpl& detector, const images::Annotated& picture, std::uint32_t index,
                        const std::string& shown_as);

  const config::TrialConfig& trial_;
  const DetectionOptions options_;
  const data::AnnotatedSet set_;
  const TaskPlace place_;
  const TaskData data_;
  const ranks::BatchShare share_;
  AspectOrder order_;
  const BatchInput input_;
  std::optional<probes::Findings> predictions_;  ///< of the newest evaluation
  std::int64_t steps_of_an_epoch_ = 1;
  std::optional<std::vector<images::Annotated>> batch_;
  std::optional<LoaderOf<PicturesInMaking>> loader_;  ///< last: its threads use the rest
};

}  // namespace abl::tasks
