// SPDX-License-Identifier: Apache-2.0
#include "models/dino/dino.h"

namespace abl::models {
namespace {

ImageFeatures& features_of(Classifier& model) {
  auto* features = dynamic_cast<ImageFeatures*>(&model);
  TORCH_CHECK_VALUE(features, "features are not available for ", model.name());
  return *features;
}

/// Between tensors of the same names.
template <class Named>
void copy_all(const Named& from, Named to) {
  for (auto& tensor : to) tensor.value().copy_(from[tensor.key()]);
}

}  // namespace

DinoNetworkImpl::DinoNetworkImpl(const ModelOptions& backbone, const DinoHeadOptions& head,
                                 torch::Device device)
    : module_{build(without_classifier(backbone), device)}, features_{&features_of(*module_)} {
  register_module<torch::nn::Module>("backbone", module_);
  head_ = register_module("head", DinoHead{features_->feature_width({}), head, device});
}

torch::Tensor DinoNetworkImpl::forward(const std::vector<torch::Tensor>& images) {
  std::vector<torch::Tensor> features;
  for (const auto& of_one_size : images) features.push_back(features_->features(of_one_size));
  return head_(torch::cat(features));
}

DinoImpl::DinoImpl(const ModelOptions& backbone, const DinoHeadOptions& head, torch::Device device)
    : student_{std::make_shared<DinoNetworkImpl>(backbone, head, device)}, teacher_{[&] {
        const StartNothing unfilled;
        const auto without_drops = with_dropout(with_drop_path(backbone, 0), {});
        return std::make_shared<DinoTeacherImpl>(with_checkpointing(without_drops, 0), head, device);
      }()} {
  register_module("student", student_);
  register_module("teacher", teacher_);
  centre_ = register_module("centre", RunningMean{torch::zeros({head.prototypes}, torch::device(device))});
  const torch::NoGradGuard no_grad;
  copy_all(student_->named_parameters(), teacher_->named_parameters());
  copy_all(student_->named_buffers(), teacher_->named_buffers());
  for (auto& parameter : teacher_->parameters()) parameter.requires_grad_(false);
}

void DinoImpl::move_centre(const torch::Tensor& mean, double momentum) {
  const torch::NoGradGuard no_grad;
  centre_->mean.lerp_(mean, 1 - momentum);
}

void DinoImpl::follow(const std::map<std::string, torch::Tensor>& weights, double momentum) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> averages, values;
  for (const auto& parameter : teacher_->named_parameters()) {
    averages.push_back(parameter.value());
    values.push_back(weights.at("student." + parameter.key()));
  }
  at::_foreach_lerp_(averages, values, 1 - momentum);
}

}  // namespace abl::models
