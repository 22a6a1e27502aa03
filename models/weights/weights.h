// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "models/weights/release_names.h"

namespace abl::models {

/// What a state may differ in from the model. What is not allowed here is refused.
struct WeightsOptions {
  /// The head may be missing, or be of another number of classes: the model's own stays as it started. Of a
  /// model without a classifier the given one is left out.
  bool fresh_head = false;
  /// A learned table of positions may be of another image size or patch, Swin's biases of another window:
  /// they are interpolated. Positions that are computed (the simple ViT's, XCiT's) fit every size anyhow;
  /// SwinV2's do where `SwinV2Options::pretrained_window` says of which windows the weights are.
  bool resize_positions = false;
  /// The patch may be of another size. The class-token ViT's kernel is resampled. XCiT's may be 16 for 8 or 8
  /// for 16: both embeddings end in the same convolutions, which are taken; those before them stay as they
  /// started. Its release has no such step: it loads only between equal patches.
  bool other_patch = false;
};

/// What did not come from the state as it was.
struct LoadedWeights {
  /// What stood before every name of the state, and before none of the model's: "module.", as wrappers leave
  /// it.
  std::string prefix;
  std::vector<std::string> fresh;    ///< as the model started
  std::vector<std::string> resized;  ///< interpolated
};

/// Copies the weights of a foreign or partial state into the model: under our names or those of the releases
/// (release_names.h), with or without what a wrapper puts before them all, in any type of real numbers. Of a
/// state of self-distillation a model that is none takes the teacher's backbone.
/// Throws: Error{kInvalidArgument} naming all that is missing, surplus, of another shape or kind, or not
/// finite in the model's type, one line each; the model is then untouched.
LoadedWeights load_weights(torch::nn::Module& model, const State& state, const WeightsOptions& options = {});

}  // namespace abl::models
