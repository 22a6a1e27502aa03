// SPDX-License-Identifier: Apache-2.0
#include "models/counting/dense_heads.h"

#include <algorithm>
#include <memory>
#include <string>

#include "models/backbones/trunk.h"
#include "models/counting/parameters.h"
#include "models/dense/mask_rcnn/mask_rcnn.h"
#include "models/dense/segmentation/segmenter.h"
#include "models/dense/trunk_maps.h"

namespace abl::models {
namespace {

const PartCount* part_named(const std::vector<PartCount>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &PartCount::name);
  return found == parts.end() ? nullptr : &*found;
}

/// The backbone of this model as XCiT's tables put it behind a detector and segmenters; null where they have
/// none such.
std::shared_ptr<TrunkMapsImpl> pyramid_of(const ModelOptions& options) {
  constexpr std::size_t kLevels = 4;
  auto model = build(without_head(options), torch::kMeta);
  const auto levels = dynamic_cast<const Trunk&>(*model).levels();
  if (levels.size() < kLevels || (levels.front().stride != 8 && levels.front().stride != 16)) return nullptr;
  return std::make_shared<TrunkMapsImpl>(std::move(model), TrunkMapsOptions{}, torch::kMeta);
}

/// But for those whose name begins so.
std::int64_t elements(const torch::nn::Module& model, const std::string& but = " ") {
  std::int64_t all = 0;
  for (const auto& entry : list_parameters(model))
    if (!entry.name.starts_with(but)) all += entry.elements;
  return all;
}

/// Of a released model of mmdetection, where the background has a score alone.
std::int64_t mask_rcnn(const std::shared_ptr<TrunkMapsImpl>& backbone) {
  const MaskRcnnOptions options{.heads = {.classes = 80, .background = BackgroundOutputs::kScoreAlone}};
  return elements(*MaskRcnn{options, backbone, torch::kMeta});
}

/// Without the convolutions that make maps finer.
std::int64_t segmenter(const std::shared_ptr<TrunkMapsImpl>& backbone, const SegmenterOptions& options) {
  return elements(*Segmenter{backbone, options, torch::kMeta}, "backbone.fpn");
}

}  // namespace

std::vector<HeadCount> head_counts(const ModelOptions& options, const std::vector<PartCount>& parts) {
  std::vector<HeadCount> counts;
  const PartCount& whole = parts.front();
  for (const char* name : {"head", "fc", "classifier", "linear_head", "linear"})  // as the families call it
    if (const auto* head = part_named(parts, name); head && counts.empty())
      counts.push_back({"params.backbone", whole.params_all - head->params_all});
  if (const auto* teacher = part_named(parts, "teacher.backbone"); teacher && whole.type == "Dino")
    counts.push_back({"params.backbone", teacher->params_all});
  if (whole.type == "Segmenter") {
    std::int64_t printed = whole.params_all;
    for (const char* finer : {"backbone.fpn1", "backbone.fpn2"})
      if (const auto* part = part_named(parts, finer)) printed -= part->params_all;
    counts.push_back({"params.all@xcit-2021", printed});
  }
  const auto backbone = whole.type == "Xcit" ? pyramid_of(options) : nullptr;
  if (!backbone) return counts;
  counts.push_back({"params.all@mask-rcnn", mask_rcnn(backbone)});
  counts.push_back({"params.all@semantic-fpn", segmenter(backbone, {.head = SemanticFpnOptions{}})});
  counts.push_back({"params.all@uper-net", segmenter(backbone, {.head = UperNetOptions{}})});
  return counts;
}

}  // namespace abl::models
