// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/backbones/feature_maps.h"
#include "models/dense/fpn.h"
#include "models/dense/mask_rcnn/instances.h"
#include "models/dense/mask_rcnn/roi_heads.h"
#include "models/dense/mask_rcnn/rpn.h"

namespace abl::models {

/// By default torchvision's `maskrcnn_resnet50_fpn`, but for its backbone and number of classes.
struct MaskRcnnOptions {
  std::int64_t width = 256;         ///< channels of the pyramid
  HeadNorm norm = HeadNorm::kNone;  ///< of the pyramid
  RpnOptions proposals{};
  RoiHeadsOptions heads{};

  /// As torchvision's `maskrcnn_resnet50_fpn_v2`: batch normalisation in pyramid and heads, two convolutions
  /// before proposals, four and one layer before boxes.
  static MaskRcnnOptions with_norms();
};

/// Mask R-CNN with a feature pyramid: boxes, classes and masks of things.
/// Parameters: `backbone.body`, `backbone.fpn`, `rpn`, `roi_heads`, named as in torchvision.
/// Source: "Mask R-CNN"; as torchvision's, without what it does to images before: they come normalised and in
/// their size, and boxes are of that size.
class MaskRcnnImpl : public torch::nn::Module {
 public:
  /// `body`: a module that is a FeatureMaps, of strides 4, 8, 16 and 32 (or others, each twice the one
  /// before).
  /// Throws: c10::ValueError where it is none.
  MaskRcnnImpl(const MaskRcnnOptions& options, const std::shared_ptr<torch::nn::Module>& body,
               torch::Device device = torch::kCPU);

  struct Losses {
    torch::Tensor classes, boxes, masks;  ///< of the heads
    torch::Tensor objectness, proposals;  ///< of the proposals: whether there is a thing, its box
    torch::Tensor sum() const { return classes + boxes + masks + objectness + proposals; }
  };
  /// `choose` draws the boxes that are counted: for each image anchors of things and of the background, then
  /// likewise of proposals for each image.
  /// Throws: c10::ValueError for a box without width or height, an unknown class, masks of another size.
  Losses losses(const ImageBatch& batch, const std::vector<Instances>& targets, const Choose& choose);

  /// Of each image, in the size that it has in the batch.
  std::vector<Detections> detect(const ImageBatch& batch);

  /// What its layers make of images, with so many regions and masks of each, wherever these are: for counting
  /// on the meta device, where nothing is chosen by its numbers. Shape: images [B, 3, H, W] -> [], a sum of
  /// all that they answer.
  torch::Tensor shaped(const torch::Tensor& images, std::int64_t regions, std::int64_t masks);

  const MaskRcnnOptions& options() const { return options_; }

 private:
  /// The levels; the last is for proposals alone.
  std::vector<torch::Tensor> levels(const ImageBatch& batch);
  RoiHeadsImpl::Pyramid pyramid(const std::vector<torch::Tensor>& levels) const;

  const MaskRcnnOptions options_;
  FeatureMaps* maps_ = nullptr;  ///< the body
  Fpn fpn_{nullptr};
  Rpn rpn_{nullptr};
  RoiHeads heads_{nullptr};
};
using MaskRcnn = Part<MaskRcnnImpl>;

/// Masks as they lie in an image: resized to their boxes, 0 around them.
/// Shape: masks [n, side, side], boxes [n, 4] -> [n, height, width].
/// Source: as torchvision's `paste_masks_in_image`: boxes are widened by a place of the mask and cut to whole
/// pixels.
torch::Tensor pasted_masks(const torch::Tensor& masks, const torch::Tensor& boxes, const ImageSize& size);

/// The same, of bool: where a mask is at least `threshold`. It takes a quarter of the memory.
torch::Tensor pasted_masks(const torch::Tensor& masks, const torch::Tensor& boxes, const ImageSize& size,
                           double threshold);

}  // namespace abl::models
