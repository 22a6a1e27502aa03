// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "base/error.h"
#include "base/stop_on_signals.h"
#include "data/progress.h"
#include "models/backbones/model_options.h"
#include "models/weights/lowered_weights.h"
#include "protocol/metrics.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/run_flags.h"
#include "worker/trainer/tasks/classify/evaluation.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/new_task.h"
#include "worker/trainer/training/checkpoint.h"
#include "worker/trainer/training/learner.h"
#include "worker/trainer/training/weight_files.h"

namespace abl::commands {
namespace {

struct EvalFlags {
  RunFlags run;
  std::filesystem::path weights;
  std::string split = "val";
  bool average = false, json = false;
};

int threads_of(const training::TrainingOptions& options) {
  return options.loader_threads > 0 ? options.loader_threads : options.threads;
}

std::shared_ptr<models::Classifier> load(const EvalFlags& flags) {
  const auto& trial = flags.run.options.trial;
  auto model = models::build(tasks::model_options(trial.model, trial.data));
  training::fit_weights(*model, training::read_weights(flags.weights, flags.average), flags.weights.string());
  model->to(torch::Device{flags.run.options.device});
  // as it was evaluated while it was trained
  if (!flags.average) models::lower_weights(*model, training::type_of_weights(trial.recipe));
  return model;
}

/// Of a task that is not classification: as its trainings evaluate.
int eval_task(const EvalFlags& flags, const std::atomic<bool>& stop) {
  const auto& options = flags.run.options;
  const auto& trial = options.trial;
  if (flags.split != protocol::metric::kVal)
    throw Error{Code::kUnimplemented, fmt::format("--split {} of a task of kind {}: only val", flags.split,
                                                  name_of(trial.task.kind))};
  const torch::Device device{options.device};
  const auto task = tasks::new_task(
      trial, {.data_root = options.data_root, .device = device, .loader_threads = threads_of(options)});
  const auto model = task->new_model();
  training::fit_weights(*model, training::read_weights(flags.weights, flags.average), flags.weights.string());
  model->to(device);
  if (!flags.average) models::lower_weights(*model, training::type_of_weights(trial.recipe));
  data::Progress progress{static_cast<std::uint64_t>(task->evaluated_images())};
  const auto values = task->evaluate(*model, flags.split, stop, [&](std::int64_t done) {
    progress.advance(static_cast<std::uint64_t>(done));
  });
  if (!values) throw Error{Code::kCancelled, "stopped before every image was evaluated"};
  tasks::expect_finite(*values, fmt::format("with the weights {}", flags.weights.string()));
  nlohmann::json document{{"split", flags.split}, {"images", task->data().val_images}};
  std::string line = flags.split + ":";
  for (const auto& [name, value] : *values) {
    const std::string metric = name.substr(name.find('/') + 1);
    const bool percent = protocol::unit_by_name(name) == protocol::Unit::kPercent;
    document[metric] = value;
    line += fmt::format(" {} {:.{}f}{},", metric, value, percent ? 2 : 4, percent ? " %" : "");
  }
  std::cout << (flags.json ? document.dump() : fmt::format("{} {} images", line, task->data().val_images))
            << '\n';
  return kExitOk;
}

int eval(EvalFlags& flags) {
  const auto& stop = stop_on_signals();
  flags.run.read();
  const auto& options = flags.run.options;
  at::set_num_threads(options.threads);
  if (options.trial.task.kind != config::TaskKind::kClassify) return eval_task(flags, stop);
  const auto data = data::open_data(options.trial.data, options.data_root);
  const auto& images = data.of(*value_named<data::Split>(flags.split));
  if (images.size() == 0)
    throw Error{Code::kInvalidArgument, fmt::format("data: split {} has no images", flags.split)};
  const auto model = load(flags);
  data::Progress progress{images.size()};
  ranks::RankGroup alone;
  const auto result = tasks::evaluate(
      *model, images, options.trial, torch::Device{options.device}, threads_of(options), alone, stop,
      [&](std::int64_t done) { progress.advance(static_cast<std::uint64_t>(done)); });
  if (!result) throw Error{Code::kCancelled, "stopped before every image was evaluated"};
  tasks::expect_finite(result->values(flags.split),
                       fmt::format("with the weights {}", flags.weights.string()));
  if (flags.json)
    std::cout << nlohmann::json{{"split", flags.split},
                                {"images", result->images},
                                {"loss", result->loss},
                                {"top1", result->top1},
                                {"top5", result->top5}}
                     .dump()
              << '\n';
  else
    std::cout << fmt::format("{}: top-1 {:.2f} %, top-5 {:.2f} %, loss {:.4f}, {} images\n", flags.split,
                             result->top1, result->top5, result->loss, result->images);
  return kExitOk;
}

}  // namespace

Run declare_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  flags->run.declare(app);
  app.add_option("--weights", flags->weights, "A checkpoint, or a state of the model (safetensors)")
      ->type_name("FILE")
      ->required();
  app.add_flag("--average", flags->average, "Use the checkpoint's running average instead of its weights");
  app.add_option("--split", flags->split, "The images to evaluate on")
      ->check(one_of({"val", "train"}))
      ->type_name("val|train")
      ->capture_default_str();
  app.add_flag("--json", flags->json, "As JSON");
  app.footer(
      "Example:\n  ablate-trainer eval --config trial.json --weights run/best.safetensors --data-root "
      "/data/imagenet\n");
  return [flags]() -> int { return eval(*flags); };
}

}  // namespace abl::commands
