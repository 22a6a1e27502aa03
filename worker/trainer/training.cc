// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/drop_path.h"
#include "models/registry.h"
#include "models/state.h"
#include "worker/trainer/batch_mixing.h"
#include "worker/trainer/evaluation.h"
#include "worker/trainer/model_factory.h"

namespace abl::trainer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// Puts the noise of random erasing in its place.
void fill(const std::vector<Patch>& patches, torch::Tensor& images) {
  for (const auto& [image, rectangle, noise] : patches)
    images[image]
        .narrow(1, rectangle.top, rectangle.height)
        .narrow(2, rectangle.left, rectangle.width)
        .copy_(noise);
}

/// Of this process on the host: where the model is on a GPU it says nothing of it.
double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

Training::Training(TrainingOptions options, Events& events)
    : options_{std::move(options)},
      events_{events},
      device_{options_.device},
      augmentation_{options_.trial.recipe, options_.trial.data.image_size},
      ranks_{*options_.ranks} {
  const auto& trial = options_.trial;
  at::set_num_threads(options_.threads);
  data_ = open_data(trial.data, options_.data_root);
  const auto weights = weight_digests(trial.recipe, options_.weights);
  length_ = length_of(trial.recipe, data_.train->size());
  order_ = std::make_unique<EpochOrder>(trial.seed, data_.train->size());
  share_ =
      share_batch(ranks_.rank(), ranks_.ranks(),
                  std::min<std::int64_t>(trial.recipe.batch, data_.train->size()), trial.recipe.accumulate);

  torch::manual_seed(RandomStream{trial.seed, Purpose::kInitialisation}.next());
  const auto model =
      models::with_drop_path(model_options(trial.model, trial.data), trial.recipe.drop_path,
                             trial.recipe.drop_path_rule == "constant" ? models::DropPathRule::kConstant
                                                                       : models::DropPathRule::kLinear);
  model_ = models::build(model);  // on the CPU first: the same start on every device
  const auto started = start_from_weights(*model_, trial.recipe, options_.weights);
  model_->to(device_);
  if ((teacher_ = load_teacher(trial, options_.weights))) teacher_->to(device_);
  optimiser_ = make_optimiser(*model_, trial.recipe);
  if (trial.recipe.precision == "fp16") scaler_.emplace(device_);
  if (trial.recipe.ema > 0) {
    auto average = models::build(model);
    average->to(device_);
    average_.emplace(std::move(average), *model_, trial.recipe.ema);
  }
  loss_sum_ = torch::zeros({}, torch::TensorOptions{torch::kFloat64}.device(device_));
  correct_ = torch::zeros_like(loss_sum_);

  const Machine machine = this_machine(device_, ranks_.ranks());
  Events::Start start{.total_steps = length_.total_steps,
                      .data_fingerprint = data_.fingerprint,
                      .environment = {{"torch", machine.torch},
                                      {"device", options_.device},
                                      {"instructions", machine.instructions},
                                      {"threads", machine.threads},
                                      {"ranks", machine.ranks},
                                      {"trainer", ABLATE_VERSION},
                                      {"result_version", config::kResultVersion}}};
  if (!weights.empty()) start.environment["weights"] = weights;
  if (!options_.resume.empty() && ranks_.first()) resume(start);
  join_ranks();
  events_.start(start);
  if (!started.empty() && done_ == 0) events_.log("info", started);
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
  load_optimiser(*optimiser_, checkpoint.tensors);
  if (average_) average_->load(checkpoint.tensors);
  if (scaler_)
    for (auto& [name, tensor] : scaler_->state()) tensor.copy_(checkpoint.tensors.at(name));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(checkpoint.tensors.at("random.cpu").clone());
  done_ = checkpoint.step, evaluated_ = checkpoint.evaluated, seen_ = checkpoint.seen;
  loss_sum_.fill_(checkpoint.loss_sum), correct_.fill_(checkpoint.correct);
  start.resumed_step = done_;
  start.bit_exact = checkpoint.machine == this_machine(device_, ranks_.ranks()) && !device_.is_cuda();
  if (checkpoint.machine.ranks == ranks_.ranks() && !ranks_.alone())
    states_ = {.random = checkpoint.tensors.at("ranks.random"), .sums = checkpoint.tensors.at("ranks.sums")};
}

Batch Training::make_batch(std::int64_t step) {
  const auto& [data, recipe] = std::tie(options_.trial.data, options_.trial.recipe);
  const auto images = data_.train->size();
  const auto epoch = static_cast<std::uint64_t>(step / length_.steps_per_epoch);
  const auto order = order_->of(epoch);
  const auto first = step % length_.steps_per_epoch * share_.batch;
  // with repeated augmentation an image stands in several places of the epoch, one after another
  const std::int64_t copies = recipe.repeated_augmentation;
  std::vector<std::uint32_t> indices;
  for (const auto place : share_.places)
    indices.push_back(order->at(static_cast<std::size_t>((first + place) / copies)));
  return collate(indices, images, data.image_size,
                 [&](std::uint32_t index, std::size_t place) -> std::optional<Prepared> {
                   const auto copy = static_cast<std::uint64_t>((first + share_.places[place]) % copies);
                   const auto sample = data_.train->load(index);
                   if (!sample) return std::nullopt;
                   RandomStream random =
                       copy == 0
                           ? RandomStream{options_.trial.seed, Purpose::kAugmentation, {epoch, index}}
                           : RandomStream{options_.trial.seed, Purpose::kAugmentation, {epoch, index, copy}};
                   return Prepared{.view = augmentation_(sample->image, random), .label = sample->label};
                 });
}

/// What the batch is to be recognised as; mixes its images where the recipe says so.
Targets Training::targets_of(const Batch& batch, torch::Tensor& images) const {
  const auto& [data, recipe] = std::tie(options_.trial.data, options_.trial.recipe);
  Targets targets{.labels = batch.labels.to(device_), .other_labels = {}, .share = 1, .teacher = {}};
  RandomStream random{options_.trial.seed, Purpose::kMixing, {static_cast<std::uint64_t>(done_)}};
  mix_batch(draw_mix_of(recipe, data.image_size, random), images, targets);
  if (teacher_) {
    const torch::NoGradGuard no_grad;
    const Precision precision{recipe, device_};
    targets.teacher = teacher_->forward(images).to(torch::kFloat32);
  }
  return targets;
}

void Training::step(const Batch& batch) {
  const auto& recipe = options_.trial.recipe;
  auto images = to_input(batch.images, device_);
  fill(batch.patches, images);
  const auto targets = targets_of(batch, images);
  for (const auto& [first, size, weight] : share_.parts) {
    const auto some = targets.narrow(first, size);
    torch::Tensor loss, logits;
    {
      const Precision precision{recipe, device_};
      logits = model_->forward(images.narrow(0, first, size));
      loss = loss_of(logits.to(torch::kFloat32), some, recipe);
    }
    const auto weighted = weight == 1 ? loss : loss * weight;
    gradients_->backward(scaler_ ? scaler_->scale(weighted) : weighted,
                         /*last=*/first + size == images.size(0));
    const torch::NoGradGuard no_grad;
    loss_sum_ += loss.detach().to(torch::kFloat64) * size;
    correct_ += logits.detach().argmax(1).eq(some.labels).sum();
  }
  const bool usable = !scaler_ || scaler_->unscale(*model_);
  if (usable && recipe.clip_norm > 0) clip_gradients(*model_, recipe.clip_norm);
  if (usable) optimiser_->step(learning_rate(recipe, done_, length_.total_steps));
  if (average_) average_->follow(*model_);
  ++done_;
  seen_ += images.size(0), timed_images_ += share_.batch;
}

void Training::report() {
  auto all = sums();
  ranks_.sum(all);
  all = all.cpu();
  const double loss = all[0].item<double>(), images = all[2].item<double>();
  events_.metric(done_, {{"train/loss", loss / images},
                         {"train/top1", 100 * all[1].item<double>() / images},
                         {"lr", learning_rate(options_.trial.recipe, done_ - 1, length_.total_steps)},
                         {"images_per_s",
                          static_cast<double>(timed_images_) / std::max(1e-9, seconds_since(timed_since_))},
                         {"memory_bytes", peak_memory_bytes()}});
  loss_sum_.zero_(), correct_.zero_(), seen_ = 0;
  timed_images_ = 0, timed_since_ = Clock::now();
  if (!std::isfinite(loss))
    throw Error{Code::kOutOfRange, fmt::format("the training loss is not finite at step {}", done_)};
}

bool Training::evaluate_as(const std::string& split, models::Classifier& model,
                           const std::atomic<bool>& stop) {
  const auto result = evaluate(model, *data_.val, options_.trial, device_, loader_threads(), ranks_, stop);
  if (!result) return false;
  events_.metric(
      done_,
      {{split + "/loss", result->loss}, {split + "/top1", result->top1}, {split + "/top5", result->top5}});
  return true;
}

/// False when it was due but stopped on the way.
bool Training::evaluate_if_due(const std::atomic<bool>& stop) {
  const bool due = done_ > 0 && (done_ % length_.eval_every == 0 || done_ == length_.total_steps);
  if (!due || evaluated_ == done_) return true;
  const auto begun = Clock::now();
  ranks_.share(model_->buffers());  // statistics of batches, where each rank has its own
  if (average_) ranks_.share(average_->model().buffers());
  if (!evaluate_as("val", *model_, stop)) return false;
  if (average_ && !evaluate_as("val_ema", average_->model(), stop)) return false;
  evaluated_ = done_;
  timed_since_ += Clock::now() - begun;  // images_per_s is the training's
  return true;
}

void Training::save() {
  const auto states = gather_states(ranks_, sums().cpu());
  saved_at_ = Clock::now();
  if (!ranks_.first()) return;
  const auto all = states.sums.sum(0);
  Checkpoint checkpoint{.config_hash = options_.config_hash,
                        .step = done_,
                        .evaluated = evaluated_,
                        .loss_sum = all[0].item<double>(),
                        .correct = all[1].item<double>(),
                        .seen = static_cast<std::int64_t>(all[2].item<double>()),
                        .machine = this_machine(device_, ranks_.ranks()),
                        .tensors = optimiser_->state()};
  if (!ranks_.alone())
    checkpoint.tensors.merge(
        std::map<std::string, torch::Tensor>{{"ranks.random", states.random}, {"ranks.sums", states.sums}});
  for (const auto& [name, tensor] : models::state_of(*model_)) checkpoint.tensors["model." + name] = tensor;
  if (average_) checkpoint.tensors.merge(average_->state());
  if (scaler_) checkpoint.tensors.merge(scaler_->state());
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
  Loader loader{done_, length_.total_steps - done_, loader_threads(), 2 * loader_threads() + 2,
                [this](std::int64_t number) { return make_batch(number); }};
  while (!stopped && !ranks_.as_first(stop)) {
    const auto batch = loader.next();
    if (!batch) break;
    model_->train();
    step(*batch);
    if (done_ % length_.log_every == 0 || done_ == length_.total_steps) report();
    stopped = !evaluate_if_due(stop);
    if (!stopped && ranks_.as_first(seconds_since(saved_at_) > options_.checkpoint_every.count())) save();
  }
  save();
  return done_ == length_.total_steps && evaluated_ == done_;
}

}  // namespace abl::trainer
