// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/dense/conv_block.h"
#include "models/dense/mask_rcnn/instances.h"
#include "models/dense/mask_rcnn/matching.h"
#include "models/dense/roi_align.h"
#include "models/dense/up_conv.h"

namespace abl::models {

/// Whether the background has a box and a mask of its own among those of the classes, which nothing uses.
enum class BackgroundOutputs {
  kScoreBoxMask,  ///< as in torchvision
  kScoreAlone,    ///< as in mmdetection
};

struct BoxHeadOptions {
  RoiAlignOptions regions{.height = 7, .width = 7, .samples = 2};
  std::vector<std::int64_t> convolutions = {};  ///< channels of each, 3 x 3, before the layers
  HeadNorm norm = HeadNorm::kNone;              ///< of the convolutions
  std::vector<std::int64_t> layers = {1024, 1024};
  MatchOptions match{.high = 0.5, .low = 0.5};
  SampleOptions sample{.count = 512, .share_of_things = 0.25};
  BoxCoder coder{.weights = {10, 10, 5, 5}};
  double beta = 1. / 9;           ///< of the boxes' loss: from where it is linear
  double least_score = 0.05;      ///< of a detection
  double least_side = 1e-2;       ///< pixels
  double suppression = 0.5;       ///< overlap above which the less sure of two detections of a class goes
  std::int64_t detections = 100;  ///< of an image, at most
};

struct MaskHeadOptions {
  RoiAlignOptions regions{.height = 14, .width = 14, .samples = 2};
  std::vector<std::int64_t> convolutions = {256, 256, 256, 256};
  HeadNorm norm = HeadNorm::kNone;
  std::int64_t hidden = 256;  ///< channels after the transposed convolution, which doubles the sides
};

struct RoiHeadsOptions {
  std::int64_t classes = 80;  ///< of things
  BackgroundOutputs background = BackgroundOutputs::kScoreBoxMask;
  BoxHeadOptions boxes{};
  MaskHeadOptions masks{};
};

/// What a region shows: vectors for the two layers after it.
/// Parameters: `fc6`, `fc7` of the two layers without convolutions; else numbered as in torchvision's
/// `FastRCNNConvFCHead`: the convolutions `N.0`, with normalisation `N.1`, then layers `5`, `7`, …
/// Shape: regions [K, C, h, w] -> [K, layers.back()].
class BoxHeadImpl : public torch::nn::Module {
 public:
  BoxHeadImpl(std::int64_t channels, const BoxHeadOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(torch::Tensor regions);

 private:
  std::vector<ConvBlock> convs_;
  std::vector<Linear> layers_;
};
using BoxHead = Part<BoxHeadImpl>;

/// The class of a region, 0 the background, and for each class the difference of its box.
/// Parameters: `cls_score`, `bbox_pred`.
class BoxPredictorImpl : public torch::nn::Module {
 public:
  BoxPredictorImpl(std::int64_t in, const RoiHeadsOptions& options, torch::Device device = torch::kCPU);
  struct Answer {
    torch::Tensor logits;       ///< [K, 1 + classes]
    torch::Tensor differences;  ///< [K, classes, 4], with the background where it has outputs
  };
  Answer forward(const torch::Tensor& x);

 private:
  Linear score_{nullptr}, box_{nullptr};
};
using BoxPredictor = Part<BoxPredictorImpl>;

/// A transposed convolution that doubles the sides, and a 1 x 1 convolution to the mask of each class.
/// Parameters: `conv5_mask`, `mask_fcn_logits`.
class MaskPredictorImpl : public torch::nn::Module {
 public:
  MaskPredictorImpl(std::int64_t in, const RoiHeadsOptions& options, torch::Device device = torch::kCPU);
  /// The mask of one class for each region: no other is computed.
  /// Shape: regions [K, in, h, w], outputs [K] -> logits [K, 2h, 2w].
  torch::Tensor forward(const torch::Tensor& regions, const torch::Tensor& outputs);

 private:
  UpConv2d doubling_{nullptr};
  Conv2d masks_{nullptr};
};
using MaskPredictor = Part<MaskPredictorImpl>;

/// The second half of Mask R-CNN: classes, boxes and masks of proposals.
/// Parameters: `box_head`, `box_predictor`, `mask_head.N.0`, `mask_predictor`.
/// Source: "Mask R-CNN", section 3 and Figure 4, right. As torchvision's `RoIHeads`, but scores and boxes are
/// float32 at least under autocast.
class RoiHeadsImpl : public torch::nn::Module {
 public:
  RoiHeadsImpl(std::int64_t channels, const RoiHeadsOptions& options, torch::Device device = torch::kCPU);

  /// The levels of a pyramid that regions are taken from.
  struct Pyramid {
    std::vector<torch::Tensor> levels;
    std::vector<std::int64_t> strides;
  };
  struct Losses {
    torch::Tensor classes, boxes, masks;
  };
  /// `proposals`: of each image [n, 4]; the things' own boxes are added.
  Losses losses(const Pyramid& pyramid, const std::vector<torch::Tensor>& proposals,
                const std::vector<Instances>& targets, const Choose& choose);
  /// What its layers answer of regions and masks wherever they are. Shape: [K, …], [M, side, side].
  struct Shaped {
    BoxPredictorImpl::Answer boxes;
    torch::Tensor masks;
  };
  Shaped shaped(const Pyramid& pyramid, std::int64_t regions, std::int64_t masks);
  std::vector<Detections> detect(const Pyramid& pyramid, const std::vector<torch::Tensor>& proposals,
                                 const std::vector<ImageSize>& sizes);

 private:
  BoxPredictorImpl::Answer answer(const Pyramid& pyramid, const torch::Tensor& rois);
  torch::Tensor mask_logits(const Pyramid& pyramid, const torch::Tensor& rois, const torch::Tensor& labels);
  Detections detections(const BoxPredictorImpl::Answer& answer, const torch::Tensor& proposals,
                        const ImageSize& size) const;
  /// Where among a region's boxes and masks those of a label are.
  torch::Tensor outputs_of(const torch::Tensor& labels) const;

  const RoiHeadsOptions options_;
  BoxHead box_head_{nullptr};
  BoxPredictor box_predictor_{nullptr};
  std::vector<ConvBlock> mask_head_;
  MaskPredictor mask_predictor_{nullptr};
};
using RoiHeads = Part<RoiHeadsImpl>;

}  // namespace abl::models
