// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace abl::models {

/// What dense heads build on: a backbone that gives maps of features, from fine to coarse, in place of
/// logits. A model is one beside what else it is; which layers its maps come from, its options say.
class FeatureMaps {
 public:
  virtual ~FeatureMaps() = default;
  /// Shape: images [B, 3, H, W] -> for each level [B, channels()[i], H/strides()[i], W/strides()[i]]; where
  /// a stride does not divide the image, rounded as the model says.
  virtual std::vector<torch::Tensor> maps(const torch::Tensor& images) = 0;
  virtual std::vector<std::int64_t> channels() const = 0;
  /// Units: pixels of the image between neighbours of a map.
  virtual std::vector<std::int64_t> strides() const = 0;
};

}  // namespace abl::models
