// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace abl::models {

/// What of a vision transformer describes an image.
struct FeatureChoice {
  std::int64_t blocks = 1;      ///< the class token after each of so many last blocks, side by side
  bool has_patch_mean = false;  ///< behind them the mean of the patches after the last block
};

/// A classifier seen before its head: one vector for each image. All tokens are taken after the model's last
/// norm.
class ImageFeatures {
 public:
  virtual ~ImageFeatures() = default;
  /// Shape: images [B, 3, H, W], of any size that the patch divides -> [B, feature_width(choice)].
  /// Throws: c10::ValueError where the model does not have what is chosen, and as `Trunk::maps_after`.
  virtual torch::Tensor features(const torch::Tensor& images, const FeatureChoice& choice) = 0;
  torch::Tensor features(const torch::Tensor& images) { return features(images, {}); }
  virtual std::int64_t feature_width(const FeatureChoice& choice) const = 0;
};

}  // namespace abl::models
