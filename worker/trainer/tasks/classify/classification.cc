// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/classify/classification.h"

#include <torch/utils.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "models/backbones/model_options.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/tasks/classify/evaluation.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/opened_data.h"

namespace abl::tasks {

Classification::Classification(const config::TrialConfig& trial, TaskPlace place)
    : trial_{trial},
      place_{std::move(place)},
      set_{opened(trial, place_)},
      data_{task_data(set_)},
      share_{share_of(trial.recipe, data_, *place_.ranks)},
      order_{std::make_unique<data::EpochOrder>(trial.seed, data_.train_images)},
      augmentation_{trial.recipe, trial.data},
      input_{place_.device, trial.data} {}

std::shared_ptr<torch::nn::Module> Classification::new_model() const {
  return models::build(training_options(trial_));
}

BatchPlan Classification::plan_of(std::int64_t step) const {
  const auto epoch = static_cast<std::uint64_t>(step / steps_of_an_epoch_);
  const auto order = order_->of(epoch);
  const auto first = step % steps_of_an_epoch_ * share_.batch;
  // with repeated augmentation an image stands in several places of the epoch, one after another
  const std::int64_t copies = trial_.recipe.repeated_augmentation;
  BatchPlan plan;
  for (const auto place : share_.places)
    plan.indices.push_back(order->at(static_cast<std::size_t>((first + place) / copies)));
  plan.prepare = [this, epoch, first, copies](std::uint32_t index, std::size_t place) {
    const auto copy = static_cast<std::uint64_t>((first + share_.places[place]) % copies);
    images::RandomStream random =
        copy == 0 ? images::RandomStream{trial_.seed, images::Purpose::kAugmentation, {epoch, index}}
                  : images::RandomStream{trial_.seed, images::Purpose::kAugmentation, {epoch, index, copy}};
    return augmentation_(*set_.train, index, random);
  };
  return plan;
}

void Classification::load(const Steps& steps) {
  loader_.reset();
  steps_of_an_epoch_ = steps.of_an_epoch;
  const Collation collation{.replace_among = data_.train_images,
                            .image_size = trial_.data.image_size,
                            .pinned = place_.device.is_cuda()};
  const auto own = static_cast<std::int64_t>(share_.places.size());
  loader_.emplace(steps.first, steps.last - steps.first,
                  LoaderOptions{.threads = place_.loader_threads,
                                .ahead = batches_ahead(own, collation.image_size, place_.loader_threads),
                                .collation = collation},
                  [this](std::int64_t number) { return plan_of(number); });
}

bool Classification::next() {
  batch_ = loader_->next();
  return batch_.has_value();
}

/// What the batch is to be recognised as; mixes its images where the recipe says so.
Targets Classification::targets_of(const Batch& batch, torch::Tensor& images, std::int64_t step) const {
  const auto& [data, recipe] = std::tie(trial_.data, trial_.recipe);
  Targets targets{.labels = input_.labels(batch), .other_labels = {}, .shares = {}, .teacher = {}};
  if (recipe.mixing != config::MixingKind::kNone) {
    images::RandomStream random{trial_.seed, images::Purpose::kMixing, {static_cast<std::uint64_t>(step)}};
    mix_batch(draw_mix_of(recipe, data.image_size, random), images, targets);
  }
  if (teacher_.model) {
    const torch::NoGradGuard no_grad;
    const auto most = std::ranges::max(share_.parts, {}, &ranks::BatchShare::Part::size).size;
    targets.teacher = device::logits_by_parts(*teacher_.model, teacher_.sees(images), recipe, most);
  }
  return targets;
}

Work Classification::work(torch::nn::Module& model, std::int64_t step, bool halved) {
  const Batch batch =
      halved ? batch_->narrow(0, std::max<std::int64_t>(1, batch_->labels.numel() / 2)) : *batch_;
  auto images = input_.images(batch);
  const auto targets = targets_of(batch, images, step);
  return work_of(dynamic_cast<models::Classifier&>(model), images, targets, trial_.recipe);
}

std::optional<std::map<std::string, double>> Classification::evaluate(
    torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  const auto result = tasks::evaluate(dynamic_cast<models::Classifier&>(model), *set_.val, trial_,
                                      place_.device, place_.loader_threads, *place_.ranks, stop, progress);
  return result ? std::optional{result->values(split)} : std::nullopt;
}

}  // namespace abl::tasks
