// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <utility>
#include <vector>

#include "models/layers/conv_norm_act.h"
#include "models/layers/layers.h"

/// Heads that say a class for every pixel. Parameters are named as in mmsegmentation
/// (mmseg/models/decode_heads and necks), whose settings are the defaults.
namespace abl::models {

using Maps = std::vector<torch::Tensor>;  ///< of a backbone, from fine to coarse

/// What every head ends with: dropout of whole channels, and a 1 x 1 convolution to the classes, which starts
/// normal with deviation 0.01 and bias 0.
/// Parameters: `conv_seg`.
/// Shape: maps of a backbone, from fine to coarse -> logits [B, classes, h, w], of a size of the head's own.
class SegmentationHeadImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const Maps& maps) = 0;

 protected:
  SegmentationHeadImpl(std::int64_t channels, std::int64_t classes, double dropout, torch::Device device);
  /// Shape: x [B, channels, h, w] -> [B, classes, h, w].
  torch::Tensor classify(const torch::Tensor& x);

 private:
  const double dropout_;
  Conv2d conv_seg_{nullptr};
};
using SegmentationHead = Part<SegmentationHeadImpl>;

/// Builds one of its kinds.
template <class Head, class... Arguments>
SegmentationHead new_head(Arguments&&... arguments) {
  return std::shared_ptr<SegmentationHeadImpl>{std::make_shared<Head>(std::forward<Arguments>(arguments)...)};
}

/// A convolution that keeps the size of its map, batch normalisation, ReLU.
ConvNormAct conv_norm_relu(std::int64_t in, std::int64_t out, std::int64_t kernel, torch::Device device);

/// Bilinear, without antialiasing; the map itself where it has that size.
/// Shape: x [B, C, h, w] -> [B, C, rows, columns].
torch::Tensor resize_map(const torch::Tensor& x, std::int64_t rows, std::int64_t columns, bool align_corners);
torch::Tensor resize_like(const torch::Tensor& x, const torch::Tensor& other, bool align_corners);
/// Shape: x [B, C, h, w] -> [B, C, factor·h, factor·w].
torch::Tensor enlarge_map(const torch::Tensor& x, std::int64_t factor, bool align_corners);

struct FcnHeadOptions {
  std::size_t level = 2;  ///< of the maps, from 0, the one that it sees
  std::int64_t channels = 256;
  std::int64_t convolutions = 1;  ///< before the last; 0: the map has `channels`
  double dropout = 0.1;
};

/// A few convolutions over one map: what learns beside another head.
/// Parameters: `convs`, `conv_seg`.
/// Source: "Fully convolutional networks for semantic segmentation"; as mmsegmentation's FCNHead without the
///         map itself beside the convolutions' result.
class FcnHeadImpl : public SegmentationHeadImpl {
 public:
  FcnHeadImpl(const FcnHeadOptions& options, std::int64_t in, std::int64_t classes,
              torch::Device device = torch::kCPU);
  torch::Tensor forward(const Maps& maps) override;

 private:
  const std::size_t level_;
  std::vector<ConvNormAct> convs_;
};

}  // namespace abl::models
