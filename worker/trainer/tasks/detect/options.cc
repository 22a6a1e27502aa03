// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "worker/trainer/tasks/detect/detection.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::tasks {
namespace {

/// DETR's for shorter sides of 480 to 800, in proportion for others.
images::MultiScale multi_scale_of(const config::RecipeConfig& recipe) {
  constexpr int kStep = 32;
  const int least = recipe.side_range.front(), most = recipe.side_range.back();
  const auto scaled = [&](int pixels) { return static_cast<int>(std::lround(pixels * most / 800.0)); };
  images::MultiScale view{.sides = {}, .longest = recipe.longest_side, .flip = recipe.flip};
  for (int side = least; side <= most; side += kStep) view.sides.push_back(side);
  for (int& side : view.before_crop) side = scaled(side);
  view.smallest_crop = scaled(view.smallest_crop), view.largest_crop = scaled(view.largest_crop);
  return view;
}

images::LargeScaleJitter jitter_of(const config::RecipeConfig& recipe, int side) {
  images::LargeScaleJitter view{.width = side, .height = side, .low = 1, .high = 1, .flip = recipe.flip};
  if (!recipe.scale_range.empty())
    view.low = recipe.scale_range.front(), view.high = recipe.scale_range.back();
  return view;
}

}  // namespace

DetectionOptions detection_options(const config::TrialConfig& trial) {
  const auto& [model, data, recipe, task, seed] = trial;
  DetectionOptions options;
  auto& detector = options.detector;
  detector.width = task.width;
  detector.proposals.anchors.sizes.assign(task.anchors.begin(), task.anchors.end());
  const std::int64_t half = task.proposals / 2;
  detector.proposals.training = {.of_level = task.proposals, .of_image = task.proposals};
  detector.proposals.evaluation = {.of_level = half, .of_image = half};
  detector.proposals.sample.count = task.sampled / 2;
  detector.heads.classes = data.classes;
  detector.heads.background =
      models::BackgroundOutputs::kScoreAlone;  // as mmdetection, the papers' framework
  detector.heads.boxes.layers = {task.box_width, task.box_width};
  detector.heads.boxes.sample.count = task.sampled;
  detector.heads.masks.convolutions.assign(4, task.mask_width);
  detector.heads.masks.hidden = task.mask_width;
  options.maps.layers.assign(task.layers.begin(), task.layers.end());
  if (recipe.side_range.empty())
    options.view = jitter_of(recipe, data.image_size);
  else
    options.view = multi_scale_of(recipe);
  options.evaluation = {.shorter = data.image_size, .longest = recipe.longest_side};
  return options;
}

models::Network detection_network(const config::TrialConfig& trial) {
  const auto options = detection_options(trial);
  const auto build = [options, model = training_options(trial)](torch::Device device) {
    const auto maps = models::build_feature_maps(model, options.maps, device);
    return std::make_shared<models::MaskRcnnImpl>(options.detector,
                                                  std::dynamic_pointer_cast<torch::nn::Module>(maps), device);
  };
  const auto shaped = [](std::int64_t regions, std::int64_t masks) {
    return [=](torch::nn::Module& module, const torch::Tensor& images) {
      return dynamic_cast<models::MaskRcnnImpl&>(module).shaped(images, regions, masks);
    };
  };
  const auto& boxes = options.detector.heads.boxes;
  const auto things = std::llround(boxes.sample.share_of_things * static_cast<double>(boxes.sample.count));
  return {.build = build,
          .answer = shaped(options.detector.proposals.evaluation.of_image, boxes.detections),
          .loss = shaped(boxes.sample.count, things)};
}

}  // namespace abl::tasks
