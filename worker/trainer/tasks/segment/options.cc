// SPDX-License-Identifier: Apache-2.0
#include "models/dense/trunk_maps.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/segment/segmentation.h"

namespace abl::tasks {
namespace {

std::variant<models::SemanticFpnOptions, models::UperNetOptions, models::SetrOptions> head_of(
    const config::TaskConfig& task) {
  using config::DenseHead;
  const auto setr = [&](models::SetrDecoder decoder) {
    return models::SetrOptions{.decoder = decoder, .channels = task.width, .dropout = task.dropout};
  };
  switch (task.head) {
    case DenseHead::kSemanticFpn:
      break;
    case DenseHead::kUperNet:
      return models::UperNetOptions{.channels = task.width, .dropout = task.dropout};
    case DenseHead::kSetrNaive:
      return setr(models::SetrDecoder::kNaive);
    case DenseHead::kSetrPup:
      return setr(models::SetrDecoder::kPup);
    case DenseHead::kSetrMla:
      return setr(models::SetrDecoder::kMla);
  }
  return models::SemanticFpnOptions{.channels = task.width, .dropout = task.dropout};
}

bool is_setr(config::DenseHead head) {
  return head != config::DenseHead::kSemanticFpn && head != config::DenseHead::kUperNet;
}

}  // namespace

SegmentationOptions segmentation_options(const config::TrialConfig& trial) {
  const auto& [model, data, recipe, task, seed] = trial;
  SegmentationOptions options{
      .segmenter = {.classes = data.classes, .head = head_of(task)}, .maps = {}, .view = {}};
  options.maps.layers.assign(task.layers.begin(), task.layers.end());
  if (is_setr(task.head)) options.maps.scale = models::MapScale::kPatch;
  const int side = data.image_size;
  auto& view = options.view;
  view.ratio = {.longer = 4 * side, .shorter = side, .low = 1, .high = 1};
  if (!recipe.scale_range.empty())
    view.ratio.low = recipe.scale_range.front(), view.ratio.high = recipe.scale_range.back();
  view.width = view.height = side;
  view.most = recipe.largest_class;
  view.flip = recipe.flip;
  view.distorts = recipe.distortion;
  options.evaluated_side = side;
  constexpr int kCoarsest = 32;  // stride of a pyramid, in pixels
  options.multiple = is_setr(task.head) ? model.patch : kCoarsest;
  if (task.inference == config::Inference::kSlide) options.window = side;
  return options;
}

models::Network segmentation_network(const config::TrialConfig& trial) {
  const auto options = segmentation_options(trial);
  const auto build = [options, model = training_options(trial)](torch::Device device) {
    return std::make_shared<models::SegmenterImpl>(models::build_feature_maps(model, options.maps, device),
                                                   options.segmenter, device);
  };
  return {.build = build,
          .answer =
              [](torch::nn::Module& module, const torch::Tensor& images) {
                return dynamic_cast<models::SegmenterImpl&>(module).forward(images);
              },
          .loss =
              [](torch::nn::Module& module, const torch::Tensor& images) {
                const auto labels = torch::empty({images.size(0), images.size(2), images.size(3)},
                                                 images.options().dtype(torch::kLong));
                auto& segmenter = dynamic_cast<models::SegmenterImpl&>(module);
                return models::segmentation_losses(segmenter.answer(images), labels).total;
              }};
}

}  // namespace abl::tasks
