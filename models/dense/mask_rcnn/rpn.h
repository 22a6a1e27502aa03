// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/dense/conv_block.h"
#include "models/dense/mask_rcnn/instances.h"
#include "models/dense/mask_rcnn/matching.h"

namespace abl::models {

/// The boxes that proposals start from: at each place of a level one for each ratio, around the place times
/// the level's stride, which is the image's side by the level's, rounded down. Source: "Faster R-CNN",
/// section 3.1.1; rounded to pixels as in torchvision.
struct AnchorOptions {
  std::vector<double> sizes = {32, 64, 128, 256,
                               512};         ///< pixels, of each level: the root of an anchor's area
  std::vector<double> ratios = {0.5, 1, 2};  ///< height by width
};

/// How many proposals are kept.
struct ProposalCounts {
  std::int64_t of_level = 2000;  ///< before suppression, the likeliest
  std::int64_t of_image = 2000;  ///< after it
};

struct RpnOptions {
  AnchorOptions anchors{};
  int convolutions = 1;  ///< 3 x 3, of all levels
  ProposalCounts training{.of_level = 2000, .of_image = 2000}, evaluation{.of_level = 1000, .of_image = 1000};
  double suppression = 0.7;  ///< overlap above which the less likely of two proposals of a level goes
  double least_score = 0;
  double least_side = 1e-3;  ///< pixels
  MatchOptions match{.high = 0.7, .low = 0.3, .keeps_best = true};
  SampleOptions sample{.count = 256, .share_of_things = 0.5};
  double beta = 1. / 9;  ///< of the boxes' loss: from where it is linear
};

/// At each place of a level, for each anchor, whether it is of a thing, and the thing's box.
/// Parameters: `conv.N.0`, `cls_logits`, `bbox_pred`, as in torchvision; normal with deviation 0.01.
class RpnHeadImpl : public torch::nn::Module {
 public:
  RpnHeadImpl(std::int64_t channels, std::int64_t anchors, int convolutions,
              torch::Device device = torch::kCPU);
  struct Answer {
    std::vector<torch::Tensor> logits;       ///< of each level [B, H·W·anchors]
    std::vector<torch::Tensor> differences;  ///< of each level [B, H·W·anchors, 4]
  };
  Answer forward(const std::vector<torch::Tensor>& levels);

 private:
  std::vector<ConvBlock> convs_;
  Conv2d logits_{nullptr}, boxes_{nullptr};
};
using RpnHead = Part<RpnHeadImpl>;

/// The region proposal network: boxes in which there may be a thing of whatever class.
/// Source: "Faster R-CNN", section 3.1; with a pyramid: "Feature pyramid networks for object detection",
/// section 4.1. As torchvision's `RegionProposalNetwork`, but boxes are float32 at least under autocast.
class RpnImpl : public torch::nn::Module {
 public:
  RpnImpl(std::int64_t channels, const RpnOptions& options, torch::Device device = torch::kCPU);

  struct Answer {
    RpnHeadImpl::Answer head;
    std::vector<torch::Tensor> anchors;    ///< of each level [H·W·anchors, 4]
    std::vector<torch::Tensor> proposals;  ///< of each image [n, 4], the likeliest first; without gradient
  };
  /// Throws: c10::ValueError where levels and sizes of anchors differ in number.
  Answer forward(const std::vector<torch::Tensor>& levels, const ImageBatch& batch);

  /// Without anchors and proposals.
  RpnHeadImpl::Answer answer(const std::vector<torch::Tensor>& levels) { return head_(levels); }

  struct Losses {
    torch::Tensor objectness, boxes;
  };
  /// Means over the sampled anchors of all images; of the boxes, those of things alone, by as many.
  Losses losses(const Answer& answer, const std::vector<Instances>& targets, const Choose& choose) const;

 private:
  std::vector<torch::Tensor> proposals(const Answer& answer, const ImageBatch& batch) const;

  const RpnOptions options_;
  RpnHead head_{nullptr};
};
using Rpn = Part<RpnImpl>;

}  // namespace abl::models
