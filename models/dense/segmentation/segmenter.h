// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <variant>
#include <vector>

#include "models/backbones/feature_maps.h"
#include "models/dense/fpn.h"
#include "models/dense/segmentation/heads.h"
#include "models/dense/segmentation/pixel_loss.h"

namespace abl::models {

struct SegmenterOptions {
  std::int64_t classes = 150;  ///< ADE20K's
  std::variant<SemanticFpnOptions, UperNetOptions, SetrOptions> head{};
};

/// What a segmenter says of a batch, of sizes of the heads' own.
struct SegmenterAnswers {
  torch::Tensor logits;                    ///< [B, classes, h, w]
  std::vector<torch::Tensor> auxiliary{};  ///< of the heads that learn beside it
};

/// A backbone, what stands between (a feature pyramid before Semantic FPN, as wide as the backbone's maps;
/// the aggregation of SETR's MLA), a head, and the heads that learn beside it. Parameters: `backbone`,
/// `neck`, `decode_head`, `auxiliary_head`, as in mmsegmentation, but for the feature pyramid inside `neck`,
/// whose own are as in torchvision. Shape: images [B, 3, H, W] -> logits [B, classes, h, w]. Source: XCiT
/// section 4.3; MSF section 3.3; as mmsegmentation's EncoderDecoder.
class SegmenterImpl : public torch::nn::Module {
 public:
  /// `backbone`: a module.
  /// Throws: c10::ValueError where the head does not fit the backbone's maps.
  SegmenterImpl(std::shared_ptr<FeatureMaps> backbone, const SegmenterOptions& options,
                torch::Device device = torch::kCPU);

  torch::Tensor forward(const torch::Tensor& images) { return decode_head_(features(images)); }
  /// With what learns beside; for training.
  SegmenterAnswers answer(const torch::Tensor& images);

 private:
  Maps features(const torch::Tensor& images);
  void add(const SemanticFpnOptions& options, std::int64_t classes, torch::Device device);
  void add(const UperNetOptions& options, std::int64_t classes, torch::Device device);
  void add(const SetrOptions& options, std::int64_t classes, torch::Device device);

  const std::shared_ptr<FeatureMaps> backbone_;
  Fpn pyramid_{nullptr};          ///< one of the two, or neither
  MlaNeck aggregation_{nullptr};  ///< is `neck`
  SegmentationHead decode_head_{nullptr};
  std::vector<SegmentationHead> auxiliary_heads_;
};
using Segmenter = Part<SegmenterImpl>;

struct SegmentationLosses {
  torch::Tensor total;                     ///< what is trained by
  torch::Tensor decode;                    ///< of the head
  std::vector<torch::Tensor> auxiliary{};  ///< of those beside it, unweighted
};

/// The losses of a batch: that of the head, and of each beside it `auxiliary_weight` times its own.
/// Shape: labels [B, H, W].
/// Throws: c10::ValueError as `pixel_loss`.
SegmentationLosses segmentation_losses(const SegmenterAnswers& answers, const torch::Tensor& labels,
                                       const PixelLossOptions& options = {}, double auxiliary_weight = 0.4);

}  // namespace abl::models
