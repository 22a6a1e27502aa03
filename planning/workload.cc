// SPDX-License-Identifier: Apache-2.0
#include "planning/workload.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "config/data/data_sets.h"
#include "config/document/trial_document.h"
#include "config/task/task_section.h"
#include "protocol/counts.h"

namespace abl::planning {
namespace {

using config::TrialConfig;

std::optional<double> macs_of(const ModelCounts& counts, const std::string& model,
                              std::string_view mode = protocol::kFlopsMacs) {
  const auto found = counts.find(model);
  if (found == counts.end()) return std::nullopt;
  const auto macs = found->second.find(std::string{mode});
  return macs == found->second.end() ? std::nullopt : std::optional{macs->second};
}

/// Of training, described for neighbours in all evaluations.
double described_for_bank(const config::TaskConfig& task, std::int64_t train, double evaluations) {
  const auto bank = static_cast<double>(bank_images(task, train));
  return task.kind == config::TaskKind::kDino ? bank * evaluations : bank;  // otherwise features stay
}

/// Of an image's step, what is computed again in the backward pass where no block keeps what it made: the
/// forward pass of what learns, a third of what it takes with both passes. Only DINO's teacher does not
/// learn.
double forward_of_step(const TrialConfig& trial, double step, double forward) {
  constexpr double kTeachersViews = 2;
  return (step - (trial.task.kind == config::TaskKind::kDino ? kTeachersViews * forward : 0)) / 3;
}

double blocks_of(const config::ModelConfig& model) {
  const int stages = std::accumulate(model.stage_depths.begin(), model.stage_depths.end(), 0);
  return std::max(1, stages > 0 ? stages : model.depth);
}

/// How many of a split a trial takes; 0: not known.
std::int64_t images_of(int asked, std::int64_t there) {
  if (asked <= 0) return there;
  return there > 0 ? std::min<std::int64_t>(asked, there) : asked;
}

/// To evaluate on, of data sets that have a name: as many as are published.
std::int64_t published_val(std::string_view name, std::int64_t train) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 9> kKnown{{{"imagenet-1k", 50'000},
                                                                             {"cifar10", 10'000},
                                                                             {"cifar100", 10'000},
                                                                             {"stl10", 8'000},
                                                                             {"stanford-cars", 8'041},
                                                                             {"inaturalist-2018", 24'426},
                                                                             {"inaturalist-2019", 3'030},
                                                                             {"ade20k", 2'000},
                                                                             {"coco", 5'000}}};
  for (const auto& [known, images] : kKnown)
    if (known == name) return images;
  return train / 10;
}

}  // namespace

std::optional<TrialConfig> trial_of(const std::string& config) {
  auto document = nlohmann::json::parse(config, nullptr, false);
  if (!document.is_object() || !document.contains("recipe")) return std::nullopt;
  if (!document.contains("seed")) document["seed"] = 0;
  std::vector<config::Problem> problems;
  TrialConfig trial;
  try {
    trial = config::read_trial_or_throw(document);
  } catch (const std::exception&) {  // a command's
    return std::nullopt;
  }
  return trial;
}

namespace {

/// As many as are there, or as many of them as are asked for.
ImageCounts in_both_splits(const TrialConfig& trial, const std::map<std::string, ImageCounts>& images) {
  ImageCounts there;
  const auto* known = config::find_data_set(trial.data.name);
  if (known && known->embedded) {  // as many as are asked for are drawn
    return {.train = trial.data.train_images > 0 ? trial.data.train_images : known->train_images,
            .val = trial.data.val_images > 0 ? trial.data.val_images : known->val_images};
  }
  if (known) there = {.train = known->images, .val = published_val(known->name, known->images)};
  if (const auto found = images.find(trial.data.name); found != images.end()) there = found->second;
  return {.train = images_of(trial.data.train_images, there.train),
          .val = images_of(trial.data.val_images, there.val)};
}

}  // namespace

std::int64_t bank_images(const config::TaskConfig& task, std::int64_t train) {
  if (!config::describes_images(task)) return 0;
  return task.bank > 0 ? std::min<std::int64_t>(task.bank, train) : train;
}

ImageCounts image_counts(const TrialConfig& trial, const std::map<std::string, ImageCounts>& images) {
  ImageCounts counts = in_both_splits(trial, images);
  if (trial.data.held_out <= 0) return counts;
  counts.val = config::held_out_of(trial.data, counts.train);
  counts.train = std::max<std::int64_t>(0, counts.train - counts.val);
  return counts;
}

std::string step_hash(const TrialConfig& trial) {
  auto document = config::canonical_document(trial);
  document.erase("seed");
  if (const auto data = document.find("data"); data != document.end())
    for (const char* key : {"train_images", "val_images", "held_out"}) data->erase(key);
  if (const auto recipe = document.find("recipe"); recipe != document.end()) {
    for (const char* key : {"epochs", "eval_every", "schedule", "step_epochs", "warmup", "use"})
      recipe->erase(key);
    for (auto& value : *recipe)
      if (value.is_number_float()) value = true;  // that it is there may mean another operation
  }
  return config::config_hash(config::canonical_json(document));
}

std::optional<Workload> workload_of(const TrialConfig& trial, const ModelCounts& counts,
                                    const std::map<std::string, ImageCounts>& images, std::string& missing,
                                    const std::string& teacher_model) {
  const auto& recipe = trial.recipe;
  const auto model = config::canonical_model_text(trial);
  const auto forward = macs_of(counts, model), step = macs_of(counts, model, protocol::kFlopsStep);
  std::optional<double> teacher = 0;
  if (recipe.distillation != config::Distillation::kNone) {
    std::vector<config::Problem> problems;
    teacher = macs_of(counts, !teacher_model.empty()
                                  ? teacher_model
                                  : config::canonical_model_text(config::read_teacher(trial, problems)));
  }
  if (!forward || !teacher) {
    missing = "its FLOPs are not known";
    return std::nullopt;
  }
  const ImageCounts there = image_counts(trial, images);
  if (there.train <= 0) {
    missing =
        fmt::format("how many images {} has is not known: 'ablate plan --measure --data {}=FOLDER' looks",
                    trial.data.name, trial.data.name);
    return std::nullopt;
  }
  Workload work{.trial = trial, .step_hash = step_hash(trial), .family = trial.model.family};
  const bool learns = trial.task.kind != config::TaskKind::kProbeKnn;
  const std::int64_t in_epoch = std::max<std::int64_t>(1, there.train / recipe.batch);
  const auto steps_in = [&](double epochs) {
    return std::max<std::int64_t>(1, std::llround(epochs * static_cast<double>(in_epoch)));
  };
  const std::int64_t steps = steps_in(recipe.epochs),
                     every = recipe.eval_every > 0 ? steps_in(recipe.eval_every) : steps;
  work.steps = learns ? static_cast<double>(steps) : 0;
  work.step_images = static_cast<double>(std::min<std::int64_t>(recipe.batch, there.train));
  work.evaluations = static_cast<double>((steps + every - 1) / every);
  work.evaluated = work.evaluations * static_cast<double>(there.val) * (recipe.ema > 0 ? 2 : 1) +
                   described_for_bank(trial.task, there.train, work.evaluations);
  work.image_macs = *forward;
  const double twice = std::min(1.0, recipe.checkpoint_blocks / blocks_of(trial.model));
  constexpr double kForwardAndBackward = 3;  // where older counts do not say
  const double once = step.value_or(kForwardAndBackward * *forward);
  const double again = step ? forward_of_step(trial, *step, *forward) : *forward;
  work.step_macs = once + twice * again + *teacher;
  return work;
}

}  // namespace abl::planning
