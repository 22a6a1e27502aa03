// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/trial_config.h"
#include "models/weights/weights.h"

namespace abl::commands {

struct InferOptions {
  std::filesystem::path weights;  ///< the model's state by name
  /// A JPEG, PNG or WebP of any size, which is shown as an evaluation shows it; or tensors: `input` [B, 3, H,
  /// W] float32 as the model takes it, and `target` [B] for gradients.
  std::filesystem::path input;
  std::filesystem::path output;       ///< replaced as a whole; empty: none
  models::WeightsOptions differ;      ///< what the weights may differ in from the model
  bool gradients = false;             ///< of the mean cross entropy against `target`
  bool train = false;                 ///< batch statistics in place of running ones
  std::vector<std::string> features;  ///< parts whose output is wanted: "blocks.0.attn"
};

struct Inference {
  models::LoadedWeights loaded;  ///< what did not come from the weights as it was
  torch::Tensor logits;          ///< [B, classes]
};

/// The images of such an input file. Shape: [B, 3, S, S], B at least 1, S the trial's.
/// Throws: Error naming the file, the tensor and what was expected.
torch::Tensor read_images(const std::filesystem::path& file, const config::TrialConfig& trial);

/// Runs a model once on given images. Writes, for comparison with another implementation, `logits` [B,
/// classes]; with gradients `loss` [1] and `grad.<parameter>`; in training mode the buffers after the pass as
/// `train.<buffer>`; `feat.<part>` for each feature.
/// Throws: Error naming the file, tensor or part and what was expected; nothing is written then.
Inference infer(const config::TrialConfig& trial, const InferOptions& options);

}  // namespace abl::commands
