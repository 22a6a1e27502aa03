// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/backbones/image_features.h"
#include "models/backbones/model_options.h"
#include "models/dino/head.h"
#include "models/layers/layers.h"

namespace abl::models {

/// A backbone without classifier, and a head on its features.
/// Parameters: `backbone`, `head`.
class DinoNetworkImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError for a family that gives no `ImageFeatures`.
  DinoNetworkImpl(const ModelOptions& backbone, const DinoHeadOptions& head, torch::Device device);

  /// Images of one size go through the backbone together, the features of all through the head.
  /// Shape: for each size [N, 3, S, S] -> [the sum of all N, prototypes], in their order.
  torch::Tensor forward(const std::vector<torch::Tensor>& images);

  torch::nn::Module& backbone() { return *module_; }
  ImageFeatures& features() { return *features_; }

 private:
  const std::shared_ptr<Classifier> module_;
  ImageFeatures* const features_;  ///< the same
  DinoHead head_{nullptr};
};

/// What a student learns from: its weights move by less than 16 bits can hold.
class DinoTeacherImpl : public DinoNetworkImpl, public FullPrecision {
 public:
  using DinoNetworkImpl::DinoNetworkImpl;
};

/// Self-distillation without labels: a student learns to say of every view of an image what a teacher says of
/// the large ones, and the teacher follows the student as a running average. The teacher has no gradients, no
/// stochastic depth and no dropout, and starts as the student does.
/// Parameters: `student`, `teacher`, of which the first learns. Buffers: `centre.mean` [prototypes]. All of
/// it is in a checkpoint.
/// Source: Caron et al., Emerging properties in self-supervised vision transformers (ICCV 2021), Figure 2 and
///         section 3.1.
class DinoImpl : public torch::nn::Module {
 public:
  /// `backbone`: of the student; its classifier is left out.
  DinoImpl(const ModelOptions& backbone, const DinoHeadOptions& head, torch::Device device = torch::kCPU);

  DinoNetworkImpl& student() { return *student_; }
  DinoNetworkImpl& teacher() { return *teacher_; }
  /// The running mean of the teacher's logits. Shape: [prototypes].
  const torch::Tensor& centre() const { return centre_->mean; }
  void move_centre(const torch::Tensor& mean, double momentum);

  /// teacher ← momentum · teacher + (1 - momentum) · student. Statistics of batch normalisation are each
  /// one's own, as in the release. `weights`: this model's state in full precision.
  void follow(const std::map<std::string, torch::Tensor>& weights, double momentum);

 private:
  const std::shared_ptr<DinoNetworkImpl> student_;
  const std::shared_ptr<DinoTeacherImpl> teacher_;
  RunningMean centre_{nullptr};
};

}  // namespace abl::models
