// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/dino/self_distillation.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "models/dino/loss.h"
#include "protocol/metrics.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/opened_data.h"

namespace abl::tasks {
namespace {

constexpr const char* kLastLayer = "student.head.last_layer.";

using Views = std::vector<images::Image> images::MultiCropViews::*;  // of one size

/// Shape: [views, count, S, S, 3], bytes, of the first `count` images.
torch::Tensor stacked(const std::vector<images::MultiCropViews>& batch, std::int64_t count, Views kind,
                      bool pinned) {
  const auto& of_first = batch.front().*kind;
  const std::int64_t side = of_first.empty() ? 0 : of_first.front().width;
  auto all = torch::empty({static_cast<std::int64_t>(of_first.size()), count, side, side, 3},
                          torch::TensorOptions{torch::kUInt8}.pinned_memory(pinned));
  auto* to = all.mutable_data_ptr<std::uint8_t>();
  for (std::size_t view = 0; view < of_first.size(); ++view)
    for (std::int64_t image = 0; image < count; ++image)
      to = std::ranges::copy((batch[static_cast<std::size_t>(image)].*kind)[view].pixels, to).out;
  return all;
}

/// Those of some images, the images of a view side by side.
/// Shape: of each size [views, B, 3, S, S] -> [views · count, 3, S, S].
std::vector<torch::Tensor> some_of(const std::vector<torch::Tensor>& by_size, std::int64_t first,
                                   std::int64_t count) {
  std::vector<torch::Tensor> some;
  for (const auto& views : by_size)
    if (views.size(0) > 0) some.push_back(views.narrow(1, first, count).flatten(0, 1));
  return some;
}

/// Shape: of each size [views · count, 3, S, S] -> [all views, count, prototypes], float32.
torch::Tensor logits_of(models::DinoNetworkImpl& network, std::vector<torch::Tensor> by_size,
                        std::int64_t count, const config::RecipeConfig& recipe) {
  torch::Tensor logits;
  device::compute(network, by_size.front(), recipe, [&](const torch::Tensor& lowered) {
    for (auto& views : by_size) views = views.to(lowered.scalar_type());
    logits = network.forward(by_size);
  });
  return logits.to(torch::kFloat).unflatten(0, {-1, count});
}

/// What the parts of a step have in common.
struct Step {
  torch::Tensor globals, locals;  ///< [views, B, 3, S, S], normalised, on the device
  double teacher_temperature = 0;
  torch::Tensor said;  ///< by the teacher: the sum of its logits, and of how many views. [prototypes + 1]
};

void add_rows(torch::Tensor& sums, const torch::Tensor& rows) {
  sums += torch::cat({rows.sum(0), torch::full({1}, static_cast<double>(rows.size(0)), rows.options())});
}

}  // namespace

double teacher_temperature(const DinoOptions& options, std::int64_t epoch) {
  const std::int64_t epochs = options.teacher_temperature_epochs;
  if (epoch >= epochs) return options.teacher_temperature;
  const double share = epochs > 1 ? static_cast<double>(epoch) / static_cast<double>(epochs - 1) : 0;
  return std::lerp(options.teacher_temperature_start, options.teacher_temperature, share);
}

double teacher_momentum(const DinoOptions& options, std::int64_t step, std::int64_t total_steps) {
  const double share =
      static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, total_steps));
  return 1 - (1 - options.teacher_momentum) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share)));
}

SelfDistillation::SelfDistillation(const config::TrialConfig& trial, DinoOptions options, TaskPlace place)
    : trial_{trial},
      options_{std::move(options)},
      place_{std::move(place)},
      set_{opened(trial, place_)},
      data_{task_data(set_)},
      share_{share_of(trial.recipe, data_, *place_.ranks)},
      order_{std::make_unique<data::EpochOrder>(trial.seed, data_.train_images)},
      input_{place_.device, trial.data} {}

std::shared_ptr<torch::nn::Module> SelfDistillation::new_model() const {
  return std::make_shared<models::DinoImpl>(training_options(trial_), options_.head);
}

SelfDistillation::ViewsPlan SelfDistillation::plan_of(std::int64_t step) const {
  const auto epoch = static_cast<std::uint64_t>(step / steps_.of_an_epoch);
  const auto order = order_->of(epoch);
  const auto first = step % steps_.of_an_epoch * share_.batch;
  ViewsPlan plan{.indices = {}, .prepare = {}, .replace_among = data_.train_images};
  for (const auto place : share_.places)
    plan.indices.push_back(order->at(static_cast<std::size_t>(first + place)));
  plan.prepare = [this, epoch](std::uint32_t index, std::size_t) -> std::optional<images::MultiCropViews> {
    const auto sample = set_.train->load(index);
    if (!sample) return std::nullopt;
    images::RandomStream random{trial_.seed, images::Purpose::kAugmentation, {epoch, index}};
    return images::multi_crop(sample->image, options_.views, random);
  };
  return plan;
}

void SelfDistillation::load(const Steps& steps) {
  if (steps.in_all < 1)
    throw Error{Code::kInternal, "self-distillation needs the number of steps of the whole training"};
  loader_.reset();
  steps_ = steps;
  const auto& views = options_.views;
  const double small = 1.0 * views.local_size / views.global_size;
  const auto of_an_image = 2 + static_cast<std::int64_t>(std::ceil(views.locals * small * small));
  const auto own = static_cast<std::int64_t>(share_.places.size());
  loader_.emplace(steps.first, steps.last - steps.first, place_.loader_threads,
                  batches_ahead(own * of_an_image, views.global_size, place_.loader_threads),
                  [this](std::int64_t number) { return std::make_shared<ViewsInMaking>(plan_of(number)); });
}

bool SelfDistillation::next() {
  batch_ = loader_->next();
  return batch_.has_value();
}

Work SelfDistillation::work(torch::nn::Module& model, std::int64_t step, bool halved) {
  auto& dino = dynamic_cast<models::DinoImpl&>(model);
  const auto all = static_cast<std::int64_t>(batch_->size());
  const auto count = halved ? std::max<std::int64_t>(1, all / 2) : all;
  const auto on_device = [&](Views kind) {
    const auto bytes = stacked(*batch_, count, kind, place_.device.is_cuda());
    const auto images = input_.images({.images = bytes.flatten(0, 1), .labels = {}, .erased = {}});
    return images.unflatten(0, {bytes.size(0), count});
  };
  const auto epoch = step / steps_.of_an_epoch;
  const auto own = std::make_shared<Step>(
      Step{.globals = on_device(&images::MultiCropViews::globals),
           .locals = on_device(&images::MultiCropViews::locals),
           .teacher_temperature = teacher_temperature(options_, epoch),
           .said = torch::zeros({options_.head.prototypes + 1}, torch::device(place_.device))});
  Work work{.images = count};
  work.loss = [this, &dino, own](const Work::Inputs&, std::int64_t first, std::int64_t part) {
    const auto targets = [&] {
      const torch::NoGradGuard no_grad;
      const auto said = logits_of(dino.teacher(), some_of({own->globals}, first, part), part, trial_.recipe);
      add_rows(own->said, said.flatten(0, 1));
      return models::teacher_targets(said, dino.centre(), own->teacher_temperature);
    }();
    const auto answers =
        logits_of(dino.student(), some_of({own->globals, own->locals}, first, part), part, trial_.recipe);
    return PartLoss{.mean = models::self_distillation_loss(answers, targets, options_.student_temperature)};
  };
  if (epoch < options_.frozen_epochs)
    for (const auto& parameter : dino.named_parameters())
      if (parameter.key().starts_with(kLastLayer)) work.frozen.insert(parameter.key());
  const double momentum = teacher_momentum(options_, step, steps_.in_all);
  work.after = [this, &dino, own, momentum](const std::map<std::string, torch::Tensor>& weights) {
    const torch::NoGradGuard no_grad;
    place_.ranks->sum(own->said);
    const auto views = own->said.narrow(0, options_.head.prototypes, 1);
    dino.move_centre(own->said.narrow(0, 0, options_.head.prototypes) / views, options_.centre_momentum);
    dino.follow(weights, momentum);
  };
  return work;
}

std::optional<std::map<std::string, double>> SelfDistillation::evaluate(
    torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  const auto judged = judge_by_neighbours(dynamic_cast<models::DinoImpl&>(model).teacher().backbone(), set_,
                                          options_.bank, trial_, place_, stop, progress);
  if (!judged) return std::nullopt;
  ++evaluations_;
  spread_ = judged->at(protocol::metric::kFeatureStd);
  return of_split(split, *judged);
}

std::string SelfDistillation::warning() const {
  constexpr double kCollapsed = 0.1;           // 1 where features spread over all directions
  const bool may_grow_yet = evaluations_ < 2;  // an XCiT's begin there
  if (may_grow_yet || !(spread_ < kCollapsed)) return {};
  return fmt::format(
      "features have collapsed: all images look nearly the same to the model ({} {:.2g}; 1 = evenly "
      "spread); try a lower lr, a longer warmup or a lower teacher_temperature",
      protocol::metric::kFeatureStd, spread_);
}

}  // namespace abl::tasks
