// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/backbones/feature_maps.h"
#include "models/backbones/model_options.h"
#include "models/backbones/trunk.h"
#include "models/dense/up_conv.h"

namespace abl::models {

/// Which strides the maps of a trunk have, whose layers are all of one.
enum class MapScale {
  kPyramid,  ///< 4, 8, 16 and 32 pixels, whatever the patch: for heads that stand on a pyramid
  kPatch,    ///< that of the patch: SETR
};

struct TrunkMapsOptions {
  /// Counted from 1, ascending. None: of a Swin all stages, of a plain transformer `usual_layers`.
  std::vector<std::int64_t> layers{};
  MapScale scale = MapScale::kPyramid;  ///< stages of Swin have their strides already
};

/// The layers that four maps come from: those at a third, a half, two thirds and the end of XCiT for a
/// pyramid (4, 6, 8, 12 of 12), at each quarter for SETR (3, 6, 9, 12).
/// Source: XCiT section 4.2, and its release for 24 layers; SETR section 3.2 (MLA).
std::vector<std::int64_t> usual_layers(std::int64_t depth, MapScale scale);

/// The map four times as fine: two transposed convolutions with normalisation and GELU between.
/// Parameters: `0`, `1` (normalisation), `3`.
/// Shape: [B, dim, H, W] -> [B, dim, 4·H, 4·W].
class FourTimesImpl : public torch::nn::Module {
 public:
  explicit FourTimesImpl(std::int64_t dim, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  UpConv2d first_{nullptr}, second_{nullptr};
  BatchNorm2d norm_{nullptr};
};
using FourTimes = Part<FourTimesImpl>;

/// A trunk as the backbone of dense heads. Maps of a plain transformer are brought to four strides: with
/// patches of 16 pixels the first becomes four times as fine and the second twice, by transposed
/// convolutions, the fourth half as fine by max pooling; with patches of 8 the first twice as fine, the third
/// and fourth half and a quarter. What pooling does not divide is left out, so of images that a stride does
/// not divide maps have ⌊H/stride⌋ rows.
/// Parameters: `trunk`, and `fpn1`, `fpn2` where maps become finer, numbered as in the XCiT release.
/// Source: XCiT section 4.2; normalisation and GELU are the release's.
class TrunkMapsImpl : public torch::nn::Module, public FeatureMaps {
 public:
  /// `trunk`: a `Trunk`.
  /// Throws: c10::ValueError when layers are not there, or patches are neither of 8 nor of 16 pixels for a
  /// pyramid.
  TrunkMapsImpl(std::shared_ptr<Classifier> trunk, TrunkMapsOptions options,
                torch::Device device = torch::kCPU);

  std::vector<torch::Tensor> maps(const torch::Tensor& images) override;
  std::vector<std::int64_t> channels() const override { return channels_; }
  std::vector<std::int64_t> strides() const override { return strides_; }

  const torch::nn::Module& trunk() const { return *module_; }

 private:
  void add_pyramid(std::int64_t dim, std::int64_t patch, torch::Device device);

  const std::shared_ptr<Classifier> module_;
  Trunk* const trunk_;  ///< the same
  std::vector<std::int64_t> layers_, channels_, strides_;
  FourTimes four_times_{nullptr};       ///< of the first map; null where it is not so refined
  UpConv2d twice_{nullptr};             ///< of the map before the first that is left as it is
  std::vector<std::int64_t> pooled_{};  ///< by which factor each map is pooled; empty where none is
};

/// The backbone of dense heads that options describe, without the parts that logits alone need: a module.
/// What gives maps of its own (ResNet) is left as it is. Throws: c10::ValueError for a family that has no
/// maps, and when `options` do not fit it.
std::shared_ptr<FeatureMaps> build_feature_maps(const ModelOptions& model,
                                                const TrunkMapsOptions& options = {},
                                                torch::Device device = torch::kCPU);

}  // namespace abl::models
