// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/probe/probes.h"

#include <utility>

#include "models/backbones/model_options.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/opened_data.h"

namespace abl::tasks {

namespace {

std::shared_ptr<models::Classifier> frozen_trunk(const config::TrialConfig& trial, torch::Device device) {
  auto trunk = models::build(models::without_classifier(model_options(trial.model, trial.data)), device);
  for (auto& parameter : trunk->parameters()) parameter.requires_grad_(false);
  return trunk;
}

}  // namespace

models::Network neighbour_probe_network(const config::TrialConfig& trial) {
  const auto answer = [](torch::nn::Module& module, const torch::Tensor& images) {
    return dynamic_cast<models::ImageFeatures&>(module).features(images);
  };
  return {.build = [trial](torch::Device device) { return frozen_trunk(trial, device); },
          .answer = answer,
          .loss =
              [answer](auto& module, const auto& images) {
                const torch::NoGradGuard no_grad;
                return answer(module, images).sum();
              }};
}

NeighbourProbe::NeighbourProbe(const config::TrialConfig& trial, const NeighbourBank& bank, TaskPlace place)
    : trial_{trial},
      bank_{bank},
      place_{std::move(place)},
      set_{opened(trial, place_)},
      data_{task_data(set_)} {}

std::shared_ptr<torch::nn::Module> NeighbourProbe::new_model() const {
  return frozen_trunk(trial_, torch::kCPU);
}

std::optional<std::map<std::string, double>> NeighbourProbe::evaluate(
    torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  const auto judged = judge_by_neighbours(model, set_, bank_, trial_, place_, stop, progress);
  if (!judged) return std::nullopt;
  return of_split(split, *judged);
}

}  // namespace abl::tasks
