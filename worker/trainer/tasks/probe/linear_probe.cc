// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/probe/probes.h"

#include <torch/utils.h>

#include <utility>

#include "worker/trainer/tasks/model_factory.h"

namespace abl::tasks {

LinearProbeImpl::LinearProbeImpl(const models::ModelOptions& trunk, const models::FeatureChoice& features,
                                 std::int64_t classes, torch::Device device)
    : choice_{features}, trunk_{models::build(models::without_classifier(trunk), device)} {
  register_module<torch::nn::Module>("trunk", trunk_);
  for (auto& parameter : trunk_->parameters()) parameter.requires_grad_(false);
  trunk_->eval();
  const auto width = dynamic_cast<const models::ImageFeatures&>(*trunk_).feature_width(choice_);
  linear_ = register_module("linear", models::Linear{width, classes, device});
  const torch::NoGradGuard no_grad;
  linear_->weight.normal_(0, 0.01);
  linear_->bias.zero_();
}

torch::Tensor LinearProbeImpl::forward(const torch::Tensor& images) {
  const auto features = [&] {
    const torch::NoGradGuard no_grad;
    return dynamic_cast<models::ImageFeatures&>(*trunk_).features(images, choice_);
  }();
  return linear_(features);
}

void LinearProbeImpl::train(bool on) {
  Classifier::train(on);
  trunk_->eval();
}

LinearProbeOptions linear_probe_options(const config::TrialConfig& trial) {
  return {.features = {.blocks = trial.task.blocks, .has_patch_mean = trial.task.patch_mean},
          .bank = {.images = trial.task.bank}};
}

models::Network linear_probe_network(const config::TrialConfig& trial) {
  return models::classifier([trunk = model_options(trial.model, trial.data),
                             features = linear_probe_options(trial).features,
                             classes = trial.data.classes](torch::Device device) {
    return std::make_shared<LinearProbeImpl>(trunk, features, classes, device);
  });
}

LinearProbe::LinearProbe(const config::TrialConfig& trial, const LinearProbeOptions& options, TaskPlace place)
    : Classification{trial, std::move(place)}, trial_{trial}, options_{options} {}

std::shared_ptr<torch::nn::Module> LinearProbe::new_model() const {
  return std::make_shared<LinearProbeImpl>(model_options(trial_.model, trial_.data), options_.features,
                                           trial_.data.classes);
}

std::optional<std::map<std::string, double>> LinearProbe::evaluate(
    torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  auto values = Classification::evaluate(model, split, stop, progress);
  if (!values) return values;
  if (!by_neighbours_)
    by_neighbours_ =
        judge_by_neighbours(started(model), set(), options_.bank, trial_, place(), stop, progress);
  if (!by_neighbours_) return std::nullopt;
  values->merge(of_split(split, *by_neighbours_));
  return values;
}

torch::nn::Module& LinearProbe::started(torch::nn::Module& model) const {
  return dynamic_cast<LinearProbeImpl&>(model).trunk();
}

}  // namespace abl::tasks
