// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/probing.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "data/progress.h"
#include "data/transform.h"
#include "models/backbones/model_options.h"
#include "models/weights/lowered_weights.h"
#include "protocol/checkpoint_files.h"
#include "protocol/probe_results.h"
#include "worker/trainer/commands/inference.h"
#include "worker/trainer/device/failure.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/classify/evaluation.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/training/checkpoint.h"
#include "worker/trainer/training/found_files.h"
#include "worker/trainer/training/weight_files.h"

namespace abl::commands {
namespace fs = std::filesystem;
namespace {}  // namespace

Probing::Probing(const training::TrainingOptions& options, Probed probed, const std::atomic<bool>& stop,
                 Progress progress)
    : options_{options},
      probed_{std::move(probed)},
      weights_{training::read_weights(probed_.weights, probed_.average)},
      stop_{stop},
      progress_{std::move(progress)},
      model_{at_size(options.trial.data.image_size)} {
  at::set_num_threads(options_.threads);
}

std::shared_ptr<models::Classifier> Probing::at_size(std::int64_t image_size) const {
  tasks::expect_classifies(options_.trial, "probe");
  auto data = options_.trial.data;
  data.image_size = static_cast<int>(image_size);
  auto model = models::build(tasks::model_options(options_.trial.model, data));
  training::fit_weights(*model, weights_, probed_.weights.string(),
                        {.resize_positions = image_size != options_.trial.data.image_size});
  model->to(torch::Device{options_.device});
  model->eval();
  return model;
}

const data::ImageSource& Probing::evaluated() {
  if (!evaluated_) {
    const auto data = data::open_data(options_.trial.data, options_.data_root, data::Needs::kVal);
    if (!probed_.data_fingerprint.empty() && data.fingerprint != probed_.data_fingerprint)
      throw Error{Code::kDataLoss,
                  fmt::format("the data here is not the run's: its fingerprint is {}, the run's is {}",
                              data.fingerprint, probed_.data_fingerprint)};
    evaluated_ = data.val;
  }
  if (evaluated_->size() == 0)
    throw Error{Code::kInvalidArgument, "data: there are no images to evaluate on"};
  return *evaluated_;
}

/// As an evaluation shows them.
probes::Shown Probing::shown(std::int64_t count) {
  const torch::Device device{options_.device};
  probes::Shown shown;
  if (!probed_.images.empty()) {
    std::vector<torch::Tensor> inputs;
    for (const auto& file : probed_.images) {
      inputs.push_back(read_images(file, options_.trial));
      const auto name = file.filename().string();
      for (std::int64_t i = 0, all = inputs.back().size(0); i < all; ++i)
        shown.names.push_back(all == 1 ? name : fmt::format("{} {}", name, i));
    }
    shown.input = torch::cat(inputs);
    shown.pixels = tasks::pixels_of(shown.input, options_.trial.data);
    shown.input = shown.input.to(device);
    return shown;
  }
  const auto& images = evaluated();
  const auto all = static_cast<std::int64_t>(images.size());
  count = std::min(count, all);
  std::vector<std::uint32_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::uint32_t>(i * all / count));
    shown.names.push_back(images.name(indices.back()));
  }
  const int size = options_.trial.data.image_size;
  const auto batch = tasks::collate(indices, {.image_size = size}, [&](std::uint32_t index, std::size_t) {
    return data::centre_of(images, index, options_.trial.recipe, size);
  });
  if (const auto missing = count - batch.labels.numel(); missing > 0)
    throw Error{
        Code::kDataLoss,
        fmt::format("{} of the {} images to look at cannot be read; 'ablate-trainer data check' names them",
                    missing, count)};
  shown.input = tasks::BatchInput{device, options_.trial.data}.images(batch);
  shown.pixels = batch.images;
  return shown;
}

probes::Accuracy Probing::accuracy(models::Classifier& model, std::int64_t image_size) {
  auto trial = options_.trial;
  trial.data.image_size = static_cast<int>(image_size);
  const auto& images = evaluated();
  data::Progress progress{images.size()};
  // as it was evaluated while it was trained; the probe has made this model for that alone
  if (!probed_.average) models::lower_weights(model, training::type_of_weights(trial.recipe));
  ranks::RankGroup alone;
  const auto result =
      tasks::evaluate(model, images, trial, torch::Device{options_.device},
                      options_.loader_threads > 0 ? options_.loader_threads : options_.threads, alone, stop_,
                      [&](std::int64_t done) { progress.advance(static_cast<std::uint64_t>(done)); });
  if (!result) throw Error{Code::kCancelled, "stopped before every image was evaluated"};
  return {.top1 = result->top1, .top5 = result->top5, .loss = result->loss, .images = result->images};
}

void Probing::progress(const std::string& probe, double part) const {
  if (stop_) throw Error{Code::kCancelled, fmt::format("stopped during {}", probe)};
  progress_(probe, part);
}

protocol::ProbeResult Probing::run(const protocol::ProbeRequest& request,
                                   const std::filesystem::path& pictures) {
  const probes::Subject subject{
      .model = *model_,
      .image_size = options_.trial.data.image_size,
      .device = torch::Device{options_.device},
      .images = [this](std::int64_t count) { return shown(count); },
      .at_size = [this](std::int64_t image_size) { return at_size(image_size); },
      .accuracy = [this](models::Classifier& model,
                         std::int64_t image_size) { return accuracy(model, image_size); },
      .progress = [this, &request](double part) { progress(request.name, part); }};
  const auto found = probes::look(subject, request);
  for (const auto& [name, value] : found.values)
    if (!std::isfinite(value))
      throw Error{Code::kFailedPrecondition,
                  fmt::format("{}: {} is not finite with the weights {}: it is {}", request.name, name,
                              probed_.weights.string(), value)};
  return training::result_of(request, found, pictures);
}

protocol::ProbeResult Probing::run_or_say(const protocol::ProbeRequest& request, const fs::path& pictures) {
  try {
    return run(request, pictures);
  } catch (const Error& error) {
    if (error.code() != Code::kFailedPrecondition && error.code() != Code::kInvalidArgument) throw;
    return {.request = request, .missing = error.what()};
  }
}

fs::path checkpoint_in(const fs::path& folder) {
  std::pair<std::int64_t, fs::path> newest{-1, folder / protocol::kBestCheckpoint};
  std::error_code error;
  for (fs::directory_iterator at{folder, error}, end; !error && at != end; at.increment(error))
    if (const auto step = protocol::step_of_checkpoint(at->path().filename().string());
        step && *step > newest.first)
      newest = {*step, at->path()};
  if (error) throw Error{Code::kNotFound, fmt::format("{}: {}", folder.string(), error.message())};
  if (newest.first < 0 && !fs::exists(newest.second, error))
    throw Error{Code::kNotFound, fmt::format("{}: no checkpoint in this folder", folder.string())};
  return newest.second;
}

namespace {

/// What went wrong with a probe, in one line.
std::string why(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) return device::first_line(*torch);
  return error.what();
}

struct Chosen {
  fs::path file;
  std::int64_t step = 0;
};

/// The weights of the best evaluation, also where the attempt before this one has them; of the last step
/// where none was kept. Throws: Error{kNotFound} where they are not here.
Chosen weights_of(const training::TrainingOptions& options) {
  std::error_code unknown;
  const auto best = options.run_dir / protocol::kBestCheckpoint;
  if (fs::exists(best, unknown)) {
    const auto facts = training::read_facts(best);
    return {best, facts ? facts->step : 0};
  }
  const auto newest = checkpoint_in(options.run_dir);
  const auto facts = training::read_facts(newest);
  if (!facts || !facts->best) return {newest, facts ? facts->step : 0};
  const auto before = options.resume.parent_path() / protocol::kBestCheckpoint;
  if (!options.resume.empty() && fs::exists(before, unknown))
    if (const auto earlier = training::read_facts(before); earlier && earlier->best == facts->best)
      return {before, earlier->step};
  throw Error{Code::kNotFound, "the weights of the best evaluation are of an earlier attempt, and not here"};
}

}  // namespace

bool probe_trained(const training::TrainingOptions& options,
                   const std::vector<protocol::ProbeRequest>& requests, protocol::Events& events,
                   const std::atomic<bool>& stop) {
  if (requests.empty()) return true;
  events.trained();
  const auto folder = options.run_dir / "probes";
  auto said = std::chrono::steady_clock::now();
  const auto progress = [&](const std::string& probe, double part) {
    constexpr std::chrono::seconds kEvery{10};
    if (const auto now = std::chrono::steady_clock::now(); now - said >= kEvery) {
      said = now;
      events.log(LogLevel::kInfo, fmt::format("probe {}: {:.0f} %", probe, 100 * part));
    }
  };
  const auto warn = [&](const std::string& what, const std::string& reason) {
    events.log(LogLevel::kWarning, fmt::format("{}: {}; run 'ablate probe' later", what, reason));
  };
  std::optional<Probing> probing;
  Chosen weights;
  try {
    make_folder(folder);
    weights = weights_of(options);
    probing.emplace(options, Probed{.weights = weights.file}, stop, progress);
  } catch (const std::exception& error) {
    warn("the model is not probed", why(error));
    return true;
  }
  for (const auto& request : requests) {
    if (stop) return false;
    events.log(LogLevel::kInfo, fmt::format("probe {}", protocol::probe_key(request)));
    try {
      const auto found = probing->run_or_say(request, folder);
      const auto file = training::write_found(found, folder);
      events.probe(weights.step, fs::path{"probes"} / file.filename());
    } catch (const std::exception& error) {
      // memory, the disk, unreadable images: the run is trained all the same
      if (stop) return false;
      warn(fmt::format("probe {} failed", protocol::probe_key(request)), why(error));
    }
  }
  return true;
}

}  // namespace abl::commands
