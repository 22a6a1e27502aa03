// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/registry.h"
#include "models/state.h"
#include "worker/trainer/data/transform.h"
#include "worker/trainer/evaluation.h"
#include "worker/trainer/model_factory.h"

namespace abl::trainer {
namespace {

namespace F = torch::nn::functional;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// Of this process on the host: where the model is on a GPU it says nothing of it.
double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

Training::Training(TrainingOptions options, Events& events)
    : options_{std::move(options)}, events_{events}, device_{options_.device} {
  const auto& trial = options_.trial;
  check_supported(trial.recipe);
  at::set_num_threads(options_.threads);
  data_ = open_data(trial.data, options_.data_root);
  length_ = length_of(trial.recipe, data_.train->size());
  order_ = std::make_unique<EpochOrder>(trial.seed, data_.train->size());

  torch::manual_seed(RandomStream{trial.seed, Purpose::kInitialisation}.next());
  model_ = models::build(
      model_options(trial.model, trial.data));  // on the CPU first: the same start on every device
  model_->to(device_);
  optimiser_ = std::make_unique<AdamW>(*model_, trial.recipe);
  loss_sum_ = torch::zeros({}, torch::TensorOptions{torch::kFloat64}.device(device_));
  correct_ = torch::zeros_like(loss_sum_);

  const Machine machine = this_machine(device_);
  Events::Start start{.total_steps = length_.total_steps,
                      .data_fingerprint = data_.fingerprint,
                      .environment = {{"torch", machine.torch},
                                      {"device", options_.device},
                                      {"instructions", machine.instructions},
                                      {"threads", machine.threads},
                                      {"trainer", ABLATE_VERSION},
                                      {"result_version", config::kResultVersion}}};
  if (!options_.resume.empty()) resume(start);
  events_.start(start);
  timed_since_ = saved_at_ = Clock::now();
}

void Training::resume(Events::Start& start) {
  Checkpoint checkpoint;
  try {
    checkpoint = read_checkpoint(options_.resume, options_.resume_sha256, options_.config_hash);
  } catch (const Error& error) {  // the work is lost, the trial is not
    events_.log("warning", fmt::format("starting again from step 0: {}", error.what()));
    return;
  }
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, tensor] : checkpoint.tensors)
    if (name.starts_with("model.")) weights[name.substr(6)] = tensor;
  models::load_state(*model_, weights);
  optimiser_->load(checkpoint.tensors);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(checkpoint.tensors.at("random.cpu").clone());
  done_ = checkpoint.step, evaluated_ = checkpoint.evaluated, seen_ = checkpoint.seen;
  loss_sum_.fill_(checkpoint.loss_sum), correct_.fill_(checkpoint.correct);
  start.resumed_step = done_;
  start.bit_exact = checkpoint.machine == this_machine(device_) && !device_.is_cuda();
}

Batch Training::make_batch(std::int64_t step) {
  const auto& [data, recipe] = std::tie(options_.trial.data, options_.trial.recipe);
  const auto images = data_.train->size();
  const auto epoch = static_cast<std::uint64_t>(step / length_.steps_per_epoch);
  const auto order = order_->of(epoch);
  const auto size = std::min<std::int64_t>(recipe.batch, images),
             first = step % length_.steps_per_epoch * size;
  return collate({order->begin() + first, order->begin() + first + size}, images, data.image_size,
                 [&](std::uint32_t index) -> std::optional<Sample> {
                   auto sample = data_.train->load(index);
                   RandomStream random{options_.trial.seed, Purpose::kAugmentation, {epoch, index}};
                   if (sample) sample->image = augment(sample->image, recipe, data.image_size, random);
                   return sample;
                 });
}

void Training::step(const Batch& batch) {
  const auto& recipe = options_.trial.recipe;
  const auto labels = batch.labels.to(device_);
  torch::Tensor loss, logits;
  {
    const Precision precision{recipe, device_};
    logits = model_->forward(to_input(batch.images, device_));
    loss = F::cross_entropy(logits.to(torch::kFloat32), labels,
                            F::CrossEntropyFuncOptions{}.label_smoothing(recipe.label_smoothing));
  }
  loss.backward();
  if (recipe.clip_norm > 0) clip_gradients(*model_, recipe.clip_norm);
  optimiser_->step(learning_rate(recipe, done_, length_.total_steps));
  ++done_;
  const torch::NoGradGuard no_grad;
  const auto images = labels.numel();
  loss_sum_ += loss.detach().to(torch::kFloat64) * images;
  correct_ += logits.detach().argmax(1).eq(labels).sum();
  seen_ += images, timed_images_ += images;
}

void Training::report() {
  const double images = static_cast<double>(seen_);
  events_.metric(done_, {{"train/loss", loss_sum_.item<double>() / images},
                         {"train/top1", 100 * correct_.item<double>() / images},
                         {"lr", learning_rate(options_.trial.recipe, done_ - 1, length_.total_steps)},
                         {"images_per_s",
                          static_cast<double>(timed_images_) / std::max(1e-9, seconds_since(timed_since_))},
                         {"memory_bytes", peak_memory_bytes()}});
  const double loss = loss_sum_.item<double>();
  loss_sum_.zero_(), correct_.zero_(), seen_ = 0;
  timed_images_ = 0, timed_since_ = Clock::now();
  if (!std::isfinite(loss))
    throw Error{Code::kOutOfRange, fmt::format("the training loss is not finite at step {}", done_)};
}

/// False when it was due but stopped on the way.
bool Training::evaluate_if_due(const std::atomic<bool>& stop) {
  const bool due = done_ > 0 && (done_ % length_.eval_every == 0 || done_ == length_.total_steps);
  if (!due || evaluated_ == done_) return true;
  const auto begun = Clock::now();
  const auto result = evaluate(*model_, *data_.val, options_.trial, device_, options_.threads, stop);
  if (!result) return false;
  events_.metric(done_, {{"val/loss", result->loss}, {"val/top1", result->top1}, {"val/top5", result->top5}});
  evaluated_ = done_;
  timed_since_ += Clock::now() - begun;  // images_per_s is the training's
  return true;
}

void Training::save() {
  Checkpoint checkpoint{.config_hash = options_.config_hash,
                        .step = done_,
                        .evaluated = evaluated_,
                        .loss_sum = loss_sum_.item<double>(),
                        .correct = correct_.item<double>(),
                        .seen = seen_,
                        .machine = this_machine(device_),
                        .tensors = optimiser_->state()};
  for (const auto& [name, tensor] : models::state_of(*model_)) checkpoint.tensors["model." + name] = tensor;
  checkpoint.tensors["random.cpu"] = at::detail::getDefaultCPUGenerator().get_state();
  const auto file = options_.run_dir / fmt::format("checkpoint-{}.safetensors", done_);
  const auto begun = Clock::now();
  const std::string digest = write_checkpoint(file, checkpoint);
  events_.checkpoint(done_, std::filesystem::absolute(file), digest);
  if (file != newest_) {  // the one before stays until this one is known to others too
    if (!older_.empty()) std::filesystem::remove(older_);
    older_ = std::exchange(newest_, file);
  }
  saved_at_ = Clock::now();
  timed_since_ += saved_at_ - begun;
}

bool Training::run(const std::atomic<bool>& stop) {
  bool stopped = !evaluate_if_due(stop);  // a stop may have come between the step and its evaluation
  Loader loader{done_, length_.total_steps - done_, options_.threads, 2 * options_.threads + 2,
                [this](std::int64_t number) { return make_batch(number); }};
  while (!stopped && !stop) {
    const auto batch = loader.next();
    if (!batch) break;
    model_->train();
    step(*batch);
    if (done_ % length_.log_every == 0 || done_ == length_.total_steps) report();
    stopped = !evaluate_if_due(stop);
    if (!stopped && seconds_since(saved_at_) > options_.checkpoint_every.count()) save();
  }
  save();
  return done_ == length_.total_steps && evaluated_ == done_;
}

}  // namespace abl::trainer
