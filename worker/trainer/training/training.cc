// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/training.h"

#include <ATen/record_function.h>
#include <fmt/ranges.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "config/document/result_version.h"
#include "config/document/trial_document.h"
#include "config/task/task_section.h"
#include "models/backbones/model_options.h"
#include "models/layers/sync_batch_norm.h"
#include "protocol/metrics.h"
#include "worker/trainer/device/device_queue.h"
#include "worker/trainer/device/failure.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/tasks/classify/evaluation.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/tasks/new_task.h"
#include "worker/trainer/tasks/plugins.h"
#include "worker/trainer/training/found_files.h"

// How a training becomes one of several ranks'.
namespace abl::training {
namespace {

using Clock = std::chrono::steady_clock;

tasks::Teacher teacher_of(const TrainingOptions& options, torch::Device device) {
  const auto& trial = options.trial;
  if (!options.only_timed) return load_teacher(trial, options.weights, device);
  if (trial.recipe.distillation == config::Distillation::kNone) return {};
  auto teacher = models::build(tasks::teacher_options(trial));
  teacher->eval();
  for (auto& parameter : teacher->parameters()) parameter.requires_grad_(false);
  teacher->to(device);
  return {.model = std::move(teacher), .sees = {}, .note = {}};
}

/// Of what learns; otherwise the one step that its evaluation belongs to.
Length length_of_task(const tasks::Task& task, const config::RecipeConfig& recipe) {
  if (!task.learns()) return {.steps_per_epoch = 1, .total_steps = 1, .eval_every = 1, .log_every = 1};
  return length_of(recipe, task.data().train_images);
}

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

}  // namespace

Training::Training(TrainingOptions options, protocol::Events& events)
    : options_{std::move(options)},
      events_{events},
      device_{options_.device},
      ranks_{*options_.ranks},
      reports_{events_, device_, options_.trial.recipe.precision == config::Precision::kFloat16},
      profile_{ranks_.first() ? options_.profile : std::filesystem::path{}, device_},
      writer_{options_.run_dir, options_.keep_last, events_} {
  const auto& trial = options_.trial;
  at::set_num_threads(options_.threads);
  task_ = tasks::new_task(trial, {.data_root = options_.data_root,
                                  .stands_in = options_.only_timed,
                                  .device = device_,
                                  .loader_threads = loader_threads(),
                                  .ranks = options_.ranks});
  if (!options_.only_timed) {
    weights_ = weight_digests(trial.recipe, options_.weights);
    weights_.merge(tasks::plugin_digests(trial.model));
  }
  const tasks::TaskData& data = task_->data();
  length_ = length_of_task(*task_, trial.recipe);
  share_ = tasks::share_of(trial.recipe, data, ranks_);

  torch::manual_seed(images::RandomStream{trial.seed, images::Purpose::kInitialisation}.next());
  auto learning = task_->new_model();  // on the CPU first: the same start on every device
  const auto started =
      options_.only_timed ? "" : start_from_weights(task_->started(*learning), trial, options_.weights);
  learning->to(device_);
  auto average = trial.recipe.ema > 0 && task_->learns() ? task_->new_model() : nullptr;
  if (average) average->to(device_);
  learner_ = std::make_unique<Learner>(std::move(learning), std::move(average), trial.recipe, device_,
                                       options_.ranks, new_graph());
  auto teacher = teacher_of(options_, device_);
  const std::string of_the_teacher = teacher.note;
  if (teacher.model) task_->take(std::move(teacher));

  const Machine machine = this_machine(device_, ranks_.ranks());
  protocol::Events::Start start{.total_steps = length_.total_steps,
                                .images_per_step = share_.batch,
                                .data_fingerprint = task_->data().fingerprint,
                                .environment = {{"torch", machine.torch},
                                                {"device", options_.device},
                                                {"instructions", machine.instructions},
                                                {"threads", machine.threads},
                                                {"ranks", machine.ranks},
                                                {"deterministic", machine.deterministic},
                                                {"trainer", ABLATE_VERSION},
                                                {"result_version", config::newest_result_version()}}};
  if (!weights_.empty()) start.environment["weights"] = weights_;
  if (!options_.resume.empty() && ranks_.first()) resume(start);
  join_ranks();
  events_.start(start);
  if (done_ == 0)
    for (const auto& text : {started, of_the_teacher})
      if (!text.empty()) events_.log(LogLevel::kInfo, text);
  if (trial.data.held_out > 0)
    events_.log(LogLevel::kInfo,
                fmt::format("data: {} of {} training images are held out: val/ metrics are of these",
                            data.val_images, data.val_images + data.train_images));
  for (const auto& what : data.passed_over) events_.log(LogLevel::kWarning, "data: " + what);
  reports_.begin(task_->recognises());
  written_at_ = Clock::now();
  reported_ = done_;  // the sums of a step that a checkpoint has are finite up to there
}

/// Of a GPU alone: the others' gradients travel while it computes. Recomputed blocks set random numbers back,
/// which a graph cannot.
std::unique_ptr<StepGraph> Training::new_graph() const {
  if (!options_.cuda_graph) return nullptr;
  const char* why = !device_.is_cuda()                            ? "on a CPU"
                    : !ranks_.alone()                             ? "with several ranks"
                    : options_.trial.recipe.checkpoint_blocks > 0 ? "with recipe.checkpoint_blocks"
                    : options_.trial.recipe.weight_decay_end != options_.trial.recipe.weight_decay
                        ? "with a weight decay that moves"
                        : nullptr;
  if (!why) return make_step_graph(device_);
  events_.log(LogLevel::kInfo, std::string{"no CUDA graph "} + why + ": launching kernels one at a time");
  return nullptr;
}

namespace {

/// The trainings for fewer epochs that are the beginning of this one, step by step: with a constant learning
/// rate it does not matter how many follow.
std::vector<std::string> beginnings(const config::TrialConfig& trial) {
  constexpr int kMostEpochs = 10'000;
  std::vector<std::string> hashes;
  if (!config::begins_longer_ones(trial)) return hashes;
  if (trial.recipe.patience > 0) return hashes;  // a shorter one evaluates at its end too
  config::TrialConfig shorter = trial;
  for (int epochs = 1; epochs < trial.recipe.epochs && epochs < kMostEpochs; ++epochs) {
    shorter.recipe.epochs = epochs;
    hashes.push_back(config::config_hash(config::canonical_text(shorter)));
  }
  return hashes;
}

}  // namespace

/// Throws: Error{kDataLoss} where a checkpoint lacks a part of what it is to be loaded into, before any of it
/// is.
void Training::expect_fits(const Checkpoint& checkpoint) const {
  auto own = learner_->state();
  own["random.cpu"] = at::detail::getDefaultCPUGenerator().get_state();
  if (const auto ranks = checkpoint.machine.ranks; ranks > 1) {
    own["ranks.random"] = own["random.cpu"].expand({ranks, -1});
    own["ranks.sums"] = torch::empty({ranks, 3});
  }
  for (const auto& [name, tensor] : own)
    if (const auto found = checkpoint.tensors.find(name);
        found == checkpoint.tensors.end() || found->second.sizes() != tensor.sizes())
      throw Error{Code::kDataLoss,
                  fmt::format("checkpoint {} has no tensor {} of shape [{}]", options_.resume.string(), name,
                              fmt::join(tensor.sizes(), ", "))};
}

void Training::resume(protocol::Events::Start& start) {
  Checkpoint checkpoint;
  try {
    checkpoint = read_checkpoint(options_.resume, options_.resume_sha256, options_.config_hash,
                                 beginnings(options_.trial));
    expect_fits(checkpoint);
  } catch (const Error& error) {
    if (!options_.restart_if_lost) throw;
    events_.log(LogLevel::kWarning, fmt::format("restarting from step 0: {}", error.what()));
    return;
  }
  learner_->load(checkpoint.tensors);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(checkpoint.tensors.at("random.cpu").clone());
  done_ = checkpoint.step, evaluated_ = checkpoint.evaluated, seen_ = checkpoint.seen;
  best_ = checkpoint.best;
  to_beat_ = checkpoint.to_beat, waited_ = checkpoint.waited;
  learner_->loss_sum().fill_(checkpoint.loss_sum), learner_->correct().fill_(checkpoint.correct);
  for (std::size_t i = 0; i < checkpoint.gradients.size(); ++i)
    learner_->gradients_sum()[static_cast<std::int64_t>(i)] = checkpoint.gradients[i];
  start.resumed_step = done_;
  const auto machine = this_machine(device_, ranks_.ranks());
  const auto other = other_inputs(checkpoint, task_->data().fingerprint, weights_);
  for (const auto& what : other) events_.log(LogLevel::kWarning, what + " from those of the earlier steps");
  start.bit_exact = machine.deterministic && checkpoint.machine == machine && other.empty();
  std::error_code missing;
  if (std::filesystem::equivalent(options_.resume.parent_path(), options_.run_dir, missing)) writer_.adopt();
  if (checkpoint.machine.ranks == ranks_.ranks() && !ranks_.alone())
    states_ = {.random = checkpoint.tensors.at("ranks.random"), .sums = checkpoint.tensors.at("ranks.sums")};
}

bool Training::next_batch() {
  const auto begun = Clock::now();
  const bool is_there = task_->next();
  reports_.spend(ProgressReports::Spent::kData, Clock::now() - begun);
  return is_there;
}

void Training::step() {
  ranks::draw_on_device(ranks_, device_, options_.trial.seed, done_);
  const auto work = task_->work(learner_->model(), done_);
  learner_->decay_by(weight_decay(options_.trial.recipe, done_, length_.total_steps));
  learner_->step(work, learning_rate(options_.trial.recipe, done_, length_.total_steps), share_.parts);
  ++done_;
  seen_ += work.images;
  reports_.count(share_.batch);
}

/// Where a profile shows it.
void Training::take_step() {
  RECORD_USER_SCOPE("training step");
  step();
}

/// The next step; false after the last.
bool Training::advance() {
  if (!task_->learns()) return done_ < length_.total_steps && ++done_ > 0;
  if (!next_batch()) return false;
  profile_.begin_step();
  take_step();
  if (profile_.end_step()) say_profile();
  if (done_ % length_.log_every == 0 || done_ == length_.total_steps) report();
  return true;
}

void Training::report() {
  auto all = torch::cat({sums(), finite_steps()});
  ranks_.sum(all);
  reports_.add(done_, reported_, all, learner_->gradients_sum(),
               learning_rate(options_.trial.recipe, done_ - 1, length_.total_steps));
  learner_->loss_sum().zero_(), learner_->correct().zero_(), learner_->finite_steps().zero_();
  learner_->gradients_sum().zero_();
  seen_ = 0, reported_ = done_;
}

bool Training::evaluate_as(const std::string& split, torch::nn::Module& model,
                           const std::atomic<bool>& stop) {
  const auto values = task_->evaluate(model, split, stop, {});
  if (!values) return false;
  events_.metric(done_, *values);
  if (const std::string warning = task_->warning(); !warning.empty())
    events_.log(LogLevel::kWarning, fmt::format("step {}: {}", done_, warning));
  tasks::expect_finite(*values, fmt::format("at step {}", done_));
  if (split == protocol::metric::kVal && ranks_.first() && !options_.only_timed) say_predictions();
  for (const auto& [metric, value] : *values) note_best(metric, value), note_progress(metric, value);
  return true;
}

/// As a probe of the run, in place of that of the evaluation before. A disk that takes it not costs the run
/// nothing.
void Training::say_predictions() {
  const auto found = task_->predictions();
  if (!found) return;
  try {
    const auto folder = options_.run_dir / "probes";
    make_folder(folder);
    const auto file = write_found(result_of({.name = "predictions"}, *found, folder), folder);
    events_.probe(done_, std::filesystem::path{"probes"} / file.filename());
  } catch (const Error& error) {
    events_.log(LogLevel::kWarning, fmt::format("predictions are not kept: {}", error.what()));
  }
}

void Training::note_best(const std::string& metric, double value) {
  if (metric != options_.keep_best || std::isnan(value)) return;
  const bool low = protocol::better_by_name(metric) == protocol::Better::kLower;
  is_best_ = !best_ || (low ? value < *best_ : value > *best_);
  if (is_best_) best_ = value;
}

void Training::note_progress(const std::string& metric, double value) {
  const auto& recipe = options_.trial.recipe;
  if (recipe.patience == 0 || metric != recipe.patience_metric) return;
  const bool low = protocol::better_by_name(metric) == protocol::Better::kLower;
  const bool is_better = !to_beat_ || (low ? value < *to_beat_ : value > *to_beat_);
  if (is_better) to_beat_ = value;
  waited_ = is_better ? 0 : waited_ + 1;
}

/// Whether the recipe's patience is at its end.
bool Training::has_waited_enough() const {
  const auto& recipe = options_.trial.recipe;
  return recipe.patience > 0 && waited_ >= recipe.patience;
}

/// False when it was due but stopped on the way.
bool Training::evaluate_if_due(const std::atomic<bool>& stop) {
  const bool due = done_ > 0 && (done_ % length_.eval_every == 0 || done_ == length_.total_steps);
  if (!due || evaluated_ == done_) return true;
  reports_.say_all();
  const auto begun = Clock::now();
  ranks_.share(learner_->model().buffers());  // statistics of batches, where each rank has its own
  if (learner_->average()) ranks_.share(learner_->average()->buffers());
  const auto before = std::tuple{best_, is_best_, to_beat_, waited_};
  if (!evaluate_as(protocol::metric::kVal, learner_->model(), stop) ||
      (learner_->average() && !evaluate_as(protocol::metric::kAverage, *learner_->average(), stop))) {
    std::tie(best_, is_best_, to_beat_, waited_) = before;  // all of it comes again when the run goes on
    return false;
  }
  evaluated_ = done_;
  reports_.spend(ProgressReports::Spent::kEvaluation, Clock::now() - begun);
  return true;
}

/// Asked of the first rank. A checkpoint that is still being written is waited for at the end alone.
bool Training::checkpoint_is_due() const {
  const auto every = writer_.interval(options_.checkpoint_every);
  return every.count() == 0 || (!writer_.is_writing() && seconds_since(written_at_) > every.count());
}

/// Copies the state, for a file that is written now or later.
void Training::hold() {
  reports_.say_all();
  const auto begun = Clock::now();
  const auto states = ranks::gather_states(ranks_, sums().cpu());
  const auto all = states.sums.sum(0);
  if (!std::isfinite(all[0].item<double>()))  // on all ranks
    throw diverged(reported_, ranks_.gather(learner_->finite_steps().cpu().reshape({1})));
  const bool is_best = std::exchange(is_best_, false);
  held_step_ = done_, is_held_ = true;
  if (ranks_.first()) {
    std::array<double, 3> gradients{};
    const auto of_steps = learner_->gradients_sum().cpu();
    std::ranges::copy_n(of_steps.const_data_ptr<double>(), gradients.size(), gradients.begin());
    Checkpoint checkpoint{{.config_hash = options_.config_hash,
                           .step = done_,
                           .evaluated = evaluated_,
                           .loss_sum = all[0].item<double>(),
                           .correct = all[1].item<double>(),
                           .seen = static_cast<std::int64_t>(all[2].item<double>()),
                           .gradients = gradients,
                           .best = best_,
                           .to_beat = to_beat_,
                           .waited = waited_,
                           .machine = this_machine(device_, ranks_.ranks()),
                           .data_fingerprint = task_->data().fingerprint,
                           .weights = weights_,
                           .model = config::canonical_teacher_text(options_.trial)},
                          learner_->state()};
    if (!ranks_.alone())
      checkpoint.tensors.merge(
          std::map<std::string, torch::Tensor>{{"ranks.random", states.random}, {"ranks.sums", states.sums}});
    checkpoint.tensors["random.cpu"] = at::detail::getDefaultCPUGenerator().get_state();
    writer_.hold(std::move(checkpoint), is_best);
  }
  reports_.spend(ProgressReports::Spent::kCheckpoints, Clock::now() - begun);
}

void Training::write() {
  const auto begun = Clock::now();
  if (ranks_.first()) writer_.write();
  is_held_ = false;
  written_at_ = Clock::now();
  reports_.spend(ProgressReports::Spent::kCheckpoints, written_at_ - begun);
}

/// The state of the best evaluation so far is copied at once: it is gone with the next step. Its file waits
/// until one is due, and is that one then: no checkpoint of a later step may say how good the best one was
/// before it lies there, for a run that goes on from it would never write it.
void Training::save_if_due() {
  if (is_best_) hold();  // on all ranks: an evaluation has the same result on each
  if (!ranks_.as_first(checkpoint_is_due())) return;
  if (!is_held_) hold();
  write();
}

void Training::save_last() {
  if (is_held_) write();
  if (held_step_ != done_) {
    hold();
    write();
  }
  writer_.finish();
}

/// The batches from here to a step.
void Training::load_to(std::int64_t last) {
  if (!task_->learns()) return;
  task_->load(
      {.first = done_, .last = last, .of_an_epoch = length_.steps_per_epoch, .in_all = length_.total_steps});
}

void Training::say_profile() {
  if (profile_.file().empty()) return;
  const auto steps = profile_.steps();
  if (steps == 0)
    events_.log(LogLevel::kWarning,
                fmt::format("no profile: the training ended before a step that it was to show; {} is empty",
                            profile_.file().string()));
  else
    events_.log(LogLevel::kInfo,
                fmt::format("profile of {} {}: {}; open it with chrome://tracing or ui.perfetto.dev", steps,
                            steps == 1 ? "step" : "steps", profile_.file().string()));
}

void Training::say_why_it_ends() {
  const auto& recipe = options_.trial.recipe;
  auto since_the_last_point = sums();
  ranks_.sum(since_the_last_point);
  if (since_the_last_point[2].item<double>() > 0) report();
  reports_.say_all();
  events_.log(LogLevel::kInfo,
              fmt::format("ends at step {} of {}: {} was not better than {:.6g} in {} evaluations (patience)",
                          done_, length_.total_steps, recipe.patience_metric, *to_beat_, waited_));
}

bool Training::run(const std::atomic<bool>& stop) {
  device::DeviceQueue queue{device_};
  bool stopped = !evaluate_if_due(stop);  // a stop may have come between the step and its evaluation
  if (is_best_) hold();
  const auto last = options_.last_step > 0 ? options_.last_step : length_.total_steps;
  profile_.expect(last - done_);
  load_to(last);
  while (!stopped && !has_waited_enough() && !ranks_.as_first(stop)) {
    if (!advance()) break;
    queue.step_given();
    reports_.say(done_ - queue.ahead());
    writer_.check();
    stopped = !evaluate_if_due(stop);
    if (!stopped) save_if_due();
  }
  if (profile_.finish() || profile_.steps() == 0) say_profile();
  const bool ends_early = has_waited_enough() && done_ < length_.total_steps;
  if (ends_early) say_why_it_ends();
  save_last();
  return (done_ == length_.total_steps || ends_early) && evaluated_ == done_;
}

/// Ranks of several machines each have data of their own under the name.
void Training::expect_same_data() {
  const std::string digest = sha256_hex(task_->data().fingerprint);
  auto own = torch::empty({static_cast<std::int64_t>(digest.size())}, torch::kUInt8);
  std::ranges::copy(digest, own.data_ptr<std::uint8_t>());
  const auto all = ranks_.gather(own);
  if (torch::equal(all[0], own)) return;
  throw device::MachineFault{
      Error{Code::kFailedPrecondition,
            fmt::format("data: {} is another version here ({}) than on the machine of the first rank",
                        options_.trial.data.name, task_->data().fingerprint)},
      {.part = protocol::Fault::Part::kData}};
}

/// All begin with what the first rank has: it alone reads a checkpoint.
void Training::join_ranks() {
  if (ranks_.alone()) return;
  expect_same_data();
  auto progress = torch::tensor({static_cast<double>(done_), static_cast<double>(evaluated_),
                                 best_.value_or(NAN), to_beat_.value_or(NAN), static_cast<double>(waited_)},
                                torch::kFloat64);
  learner_->agree(ranks_);
  ranks_.share({progress});
  done_ = progress[0].item<std::int64_t>(), evaluated_ = progress[1].item<std::int64_t>();
  if (const auto best = progress[2].item<double>(); !std::isnan(best)) best_ = best;
  if (const auto to_beat = progress[3].item<double>(); !std::isnan(to_beat)) to_beat_ = to_beat;
  waited_ = progress[4].item<std::int64_t>();
  if (!states_.random.defined()) {
    states_ = ranks::new_states(options_.trial.seed, ranks_.ranks(), done_);
    if (ranks_.first()) states_.sums[0].copy_(sums());
  }
  ranks_.share({states_.random, states_.sums});
  ranks::draw_as(states_, ranks_);
  const auto own = states_.sums[ranks_.rank()];
  learner_->loss_sum().copy_(own[0]), learner_->correct().copy_(own[1]);
  seen_ = static_cast<std::int64_t>(own[2].item<double>());
  if (options_.trial.recipe.sync_batch_norm)
    models::synchronise_batch_norms(learner_->model(), [this](torch::Tensor& tensor) { ranks_.sum(tensor); });
}

/// Of each rank, in this one's place: they are added up. [ranks]
torch::Tensor Training::finite_steps() const {
  const auto& own = learner_->finite_steps();
  if (ranks_.alone()) return own.reshape({1});
  auto all = torch::zeros({ranks_.ranks()}, own.options());
  all[ranks_.rank()] = own;
  return all;
}

torch::Tensor Training::sums() const {
  const auto& loss = learner_->loss_sum();
  return torch::stack({loss, learner_->correct(), torch::full_like(loss, static_cast<double>(seen_))});
}

}  // namespace abl::training
