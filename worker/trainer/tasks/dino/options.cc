// SPDX-License-Identifier: Apache-2.0
#include <torch/types.h>

#include <algorithm>

#include "models/dino/loss.h"
#include "models/weights/lowered_weights.h"
#include "worker/trainer/tasks/dino/self_distillation.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::tasks {

DinoOptions dino_options(const config::TrialConfig& trial) {
  const auto& task = trial.task;
  DinoOptions options;
  options.head = {.prototypes = task.prototypes,
                  .hidden = task.width,
                  .bottleneck = task.bottleneck,
                  .has_fixed_norm = task.fixed_norm};
  auto& views = options.views;
  views.global_size = trial.data.image_size, views.local_size = task.local_size;
  views.locals = task.local_views;
  views.global.area_low = task.global_area.at(0), views.global.area_high = task.global_area.at(1);
  if (task.local_views > 0)
    views.local.area_low = task.local_area.at(0), views.local.area_high = task.local_area.at(1);
  views.blur_low = std::min(views.blur_low, task.blur), views.blur_high = task.blur;
  views.flip = trial.recipe.flip;
  options.student_temperature = task.student_temperature;
  options.teacher_temperature = task.teacher_temperature;
  options.teacher_temperature_start = task.teacher_temperature_start;
  options.teacher_temperature_epochs = task.teacher_temperature_epochs;
  options.centre_momentum = task.centre_momentum;
  options.teacher_momentum = task.teacher_momentum;
  options.frozen_epochs = task.frozen_epochs;
  options.bank = {.images = task.bank};
  return options;
}

models::Network dino_network(const config::TrialConfig& trial) {
  const auto options = dino_options(trial);
  return {
      .build =
          [options, backbone = training_options(trial)](torch::Device device) {
            return std::make_shared<models::DinoImpl>(backbone, options.head, device);
          },
      .answer =
          [](torch::nn::Module& module, const torch::Tensor& images) {
            return dynamic_cast<models::DinoImpl&>(module).teacher().features().features(images);
          },
      .loss =
          [views = options.views](torch::nn::Module& module, const torch::Tensor& images) {
            auto& dino = dynamic_cast<models::DinoImpl&>(module);
            const auto count = images.size(0), side = static_cast<std::int64_t>(views.local_size);
            const auto globals = torch::cat({images, images});
            std::vector<torch::Tensor> all{globals};
            if (views.locals > 0)
              all.push_back(torch::empty({views.locals * count, 3, side, side}, images.options()));
            const auto targets = [&] {
              const torch::NoGradGuard no_grad;
              const auto exact =
                  globals.to(models::weight_type(dino.teacher()));  // its weights are not lowered
              const auto said = dino.teacher().forward({exact}).to(torch::kFloat);
              return models::teacher_targets(said.unflatten(0, {2, count}), dino.centre(), /*temperature=*/1);
            }();
            const auto answers = dino.student().forward(all).to(torch::kFloat);
            return models::self_distillation_loss(answers.unflatten(0, {2 + views.locals, count}), targets,
                                                  /*temperature=*/1);
          }};
}

}  // namespace abl::tasks
