// SPDX-License-Identifier: Apache-2.0
#include "models/counting/dense_heads.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "models/counting/parameters.h"
#include "models/layers/layers.h"

namespace abl::models {
namespace {

constexpr int kLevels = 4;  // of every pyramid

/// Named parts.
class Tree : public torch::nn::Module {
 public:
  Tree& child(const std::string& name) { return *register_module(name, std::make_shared<Tree>()); }

  template <class Module>
  void add(const std::string& name, Module part) {
    register_module(name, part);
  }
  void linear(const std::string& name, std::int64_t in, std::int64_t out) {
    add(name, Linear{in, out, torch::kMeta});
  }
  /// A convolution with bias. A transposed one has as many parameters.
  void conv(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel) {
    add(name, Conv2d{Conv2dOptions{.in = in, .out = out, .kernel = kernel}, torch::kMeta});
  }
  /// A convolution without bias, and batch normalisation.
  void conv_norm(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t kernel) {
    auto& part = child(name);
    part.add("conv",
             Conv2d{Conv2dOptions{.in = in, .out = out, .kernel = kernel, .bias = false}, torch::kMeta});
    part.add("bn", BatchNorm2d{out, torch::kMeta});
  }
};

std::string numbered(const std::string& name, int index) { return name + std::to_string(index); }

struct Maps {
  std::int64_t dim = 0, patch = 0;  ///< of the backbone: channels, pixels of a patch's side
};

/// Makes the finer levels of the pyramid from the patches: with patches of 16 one map twice as fine, by one
/// deconvolution, and one four times, by two with a normalisation between; with patches of 8 the former.
void add_deconvolutions(Tree& model, const Maps& sizes) {
  auto& levels = model.child("resize");
  const auto dim = sizes.dim;
  levels.conv("twice", dim, dim, 2);
  if (sizes.patch != 16) return;
  auto& four_times = levels.child("four_times");
  four_times.conv("first", dim, dim, 2);
  four_times.add("bn", BatchNorm2d{dim, torch::kMeta});
  four_times.conv("second", dim, dim, 2);
}

void add_pyramid(Tree& model, std::int64_t in, std::int64_t out) {
  auto& neck = model.child("neck");
  for (int level = 0; level < kLevels; ++level) {
    neck.conv(numbered("lateral", level), in, out, 1);
    neck.conv(numbered("output", level), out, out, 3);
  }
}

/// Proposals from 3 anchors at each place: whether there is a thing, and its box.
void add_proposals(Tree& model, std::int64_t width) {
  auto& proposals = model.child("rpn_head");
  proposals.conv("shared", width, width, 3);
  proposals.conv("thing", width, 3, 1);
  proposals.conv("box", width, 3 * 4, 1);
}

/// From 7 x 7 places of a proposal: its class, or none, and a box for each class.
void add_boxes(Tree& model, std::int64_t width, std::int64_t classes) {
  auto& head = model.child("bbox_head");
  head.linear("fc1", width * 7 * 7, 1024);
  head.linear("fc2", 1024, 1024);
  head.linear("class", 1024, classes + 1);
  head.linear("box", 1024, 4 * classes);
}

void add_masks(Tree& model, std::int64_t width, std::int64_t classes) {
  auto& head = model.child("mask_head");
  for (int i = 0; i < 4; ++i) head.conv(numbered("conv", i), width, width, 3);
  head.conv("upsample", width, width, 2);
  head.conv("mask", width, classes, 1);
}

std::shared_ptr<Tree> mask_rcnn(const Maps& backbone) {
  constexpr std::int64_t kWidth = 256, kClasses = 80;
  auto model = std::make_shared<Tree>();
  add_deconvolutions(*model, backbone);
  add_pyramid(*model, backbone.dim, kWidth);
  add_proposals(*model, kWidth);
  add_boxes(*model, kWidth, kClasses);
  add_masks(*model, kWidth, kClasses);
  return model;
}

std::shared_ptr<Tree> semantic_fpn(const Maps& backbone) {
  constexpr std::int64_t kWidth = 128, kClasses = 150;
  constexpr int kConvolutions[kLevels] = {1, 1, 2, 3};  // one for each doubling, but at least one
  auto model = std::make_shared<Tree>();
  add_pyramid(*model, backbone.dim, backbone.dim);
  auto& head = model->child("decode_head");
  for (int level = 0; level < kLevels; ++level) {
    auto& scale = head.child(numbered("scale", level));
    for (int i = 0; i < kConvolutions[level]; ++i)
      scale.conv_norm(numbered("conv", i), i == 0 ? backbone.dim : kWidth, kWidth, 3);
  }
  head.conv("segment", kWidth, kClasses, 1);
  return model;
}

std::shared_ptr<Tree> uper_net(const Maps& backbone) {
  constexpr std::int64_t kWidth = 512, kAuxiliary = 256, kClasses = 150;
  const auto dim = backbone.dim;
  auto model = std::make_shared<Tree>();
  auto& head = model->child("decode_head");
  for (const int bins : {1, 2, 3, 6}) head.conv_norm(numbered("pool", bins), dim, kWidth, 1);
  head.conv_norm("bottleneck", dim + 4 * kWidth, kWidth, 3);
  for (int level = 0; level < kLevels - 1; ++level) {  // the last comes from the pooled one
    head.conv_norm(numbered("lateral", level), dim, kWidth, 1);
    head.conv_norm(numbered("output", level), kWidth, kWidth, 3);
  }
  head.conv_norm("fuse", kLevels * kWidth, kWidth, 3);
  head.conv("segment", kWidth, kClasses, 1);

  auto& auxiliary = model->child("auxiliary_head");
  auxiliary.conv_norm("conv", dim, kAuxiliary, 3);
  auxiliary.conv("segment", kAuxiliary, kClasses, 1);
  return model;
}

std::int64_t elements(const Tree& model) {
  std::int64_t all = 0;
  for (const auto& entry : list_parameters(model)) all += entry.elements;
  return all;
}

const PartCount* part_named(const std::vector<PartCount>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &PartCount::name);
  return found == parts.end() ? nullptr : &*found;
}

/// Patch embedding, positions and blocks.
std::int64_t backbone_of(const std::vector<PartCount>& parts) {
  std::int64_t all = 0;
  for (const char* name : {"patch_embed", "pos_embed", "blocks", "codes"})
    if (const auto* part = part_named(parts, name)) all += part->params_all;
  return all;
}

}  // namespace

std::vector<HeadCount> head_counts(const std::vector<PartCount>& parts, std::int64_t image_size) {
  std::vector<HeadCount> counts;
  const PartCount& whole = parts.front();
  for (const char* name : {"head", "fc", "classifier", "linear_head"})  // as the families call it
    if (const auto* head = part_named(parts, name); head && counts.empty())
      counts.push_back({"params.backbone", whole.params_all - head->params_all});
  const auto* block = part_named(parts, "blocks.0");
  if (whole.type != "Xcit" || !block || block->output.size() != 3) return counts;
  const auto side = std::llround(std::sqrt(static_cast<double>(block->output[1])));
  const Maps maps{.dim = block->output[2], .patch = image_size / side};
  if (maps.patch != 16 && maps.patch != 8) return counts;
  const auto backbone = backbone_of(parts);
  counts.push_back({"params.all@mask-rcnn", backbone + elements(*mask_rcnn(maps))});
  counts.push_back({"params.all@semantic-fpn", backbone + elements(*semantic_fpn(maps))});
  counts.push_back({"params.all@uper-net", backbone + elements(*uper_net(maps))});
  return counts;
}

}  // namespace abl::models
