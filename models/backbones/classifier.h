// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

namespace abl::models {

/// What a model says of a batch. Shape: [B, classes] each.
struct Answers {
  torch::Tensor logits;
  torch::Tensor
      distilled{};  ///< of a head that is there to learn from a teacher; undefined where there is none

  /// What the model is evaluated by: the mean of its heads.
  torch::Tensor combined() const { return distilled.defined() ? (logits + distilled) / 2 : logits; }
};

/// What every family builds: images in, one logit for each class out.
/// Shape: images [B, 3, S, S] -> [B, classes].
/// Thread: `forward` in evaluation may run on several threads at once; it changes nothing in the model.
class Classifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;
  /// Head by head what `forward` combines.
  virtual Answers answer(const torch::Tensor& images) { return {forward(images)}; }

  /// A model of its own with the same options, numbers, types, modes and frozen parameters, on `device` where
  /// one is given. Gradients are not copied, and no random number is drawn.
  /// Throws: c10::NotImplementedError of a model that does not say how to build `another`.
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = {}) const final;

 protected:
  /// A model of the same options; its numbers are not asked for.
  virtual std::shared_ptr<Classifier> another(torch::Device device) const;
};

/// Those that a network is made of, or that it is: outermost ones, in the order of registration. Of a
/// segmenter or a detector its backbone.
std::vector<Classifier*> classifiers_in(torch::nn::Module& network);

}  // namespace abl::models
