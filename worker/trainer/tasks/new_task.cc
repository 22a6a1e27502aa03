// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/new_task.h"

#include <utility>

#include "worker/trainer/tasks/classify/classification.h"
#include "worker/trainer/tasks/detect/detection.h"
#include "worker/trainer/tasks/dino/self_distillation.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/probe/probes.h"
#include "worker/trainer/tasks/segment/segmentation.h"

namespace abl::tasks {

std::unique_ptr<Task> new_task(const config::TrialConfig& trial, TaskPlace place) {
  switch (trial.task.kind) {
    case config::TaskKind::kClassify:
      break;
    case config::TaskKind::kDetect: {
      auto set = annotated_data(trial, place);
      return std::make_unique<Detection>(trial, detection_options(trial), std::move(set), std::move(place));
    }
    case config::TaskKind::kSegment: {
      auto set = annotated_data(trial, place);
      return std::make_unique<Segmentation>(trial, segmentation_options(trial), std::move(set),
                                            std::move(place));
    }
    case config::TaskKind::kDino:
      return std::make_unique<SelfDistillation>(trial, dino_options(trial), std::move(place));
    case config::TaskKind::kProbeLinear:
      return std::make_unique<LinearProbe>(trial, linear_probe_options(trial), std::move(place));
    case config::TaskKind::kProbeKnn:
      return std::make_unique<NeighbourProbe>(trial, NeighbourBank{.images = trial.task.bank},
                                              std::move(place));
  }
  return std::make_unique<Classification>(trial, std::move(place));
}

models::Network network_of(const config::TrialConfig& trial) {
  switch (trial.task.kind) {
    case config::TaskKind::kClassify:
      break;
    case config::TaskKind::kSegment:
      return segmentation_network(trial);
    case config::TaskKind::kDetect:
      return detection_network(trial);
    case config::TaskKind::kDino:
      return dino_network(trial);
    case config::TaskKind::kProbeLinear:
      return linear_probe_network(trial);
    case config::TaskKind::kProbeKnn:
      return neighbour_probe_network(trial);
  }
  return models::classifier(
      [options = training_options(trial)](torch::Device device) { return models::build(options, device); });
}

}  // namespace abl::tasks
