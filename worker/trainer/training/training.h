// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "config/trial_config.h"
#include "protocol/events.h"
#include "protocol/metrics.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/ranks/rank_group.h"
#include "worker/trainer/ranks/rank_states.h"
#include "worker/trainer/tasks/task.h"
#include "worker/trainer/training/checkpoint.h"
#include "worker/trainer/training/checkpoint_writer.h"
#include "worker/trainer/training/learner.h"
#include "worker/trainer/training/progress_reports.h"
#include "worker/trainer/training/schedule.h"
#include "worker/trainer/training/step_profile.h"
#include "worker/trainer/training/weight_files.h"

namespace abl::training {

struct TrainingOptions {
  config::TrialConfig trial;
  std::string config_hash;
  std::filesystem::path run_dir;
  std::string data_root;         ///< empty: embedded data
  WeightFiles weights;           ///< of the names in the recipe
  std::filesystem::path resume;  ///< empty: from the start
  std::string resume_sha256;
  bool restart_if_lost = false;  ///< from the start where that checkpoint cannot be used; otherwise an error
  std::string device = "cpu";
  bool cuda_graph = false;  ///< a GPU starts a step as a whole, not kernel by kernel
  int threads = 1;          ///< of the products
  int loader_threads = 0;   ///< that prepare images; 0: as many as `threads`
  std::chrono::duration<double> checkpoint_every{
      20};            ///< or 50 times what the last one cost, if that is longer; 0: after every step
  int keep_last = 2;  ///< checkpoints
  std::string keep_best =
      protocol::metric::kValTop1;  ///< the metric of the evaluation whose checkpoint stays too; empty: none
  std::int64_t last_step = 0;      ///< where to stop before the end; 0: at the end
  std::filesystem::path profile;   ///< for a trace of some steps (StepProfile); empty: none
  /// It is to be timed alone (`measure`): weights that the recipe names are not read, and where there is no
  /// folder of its data, stand-ins take their place.
  bool only_timed = false;
  std::shared_ptr<ranks::RankGroup> ranks =
      std::make_shared<ranks::RankGroup>();  ///< that train this trial together
};

/// How long the parts of a training take, from some of them.
struct Pace {
  std::vector<double> steps;   ///< seconds of each step that was timed, after those that warm up
  std::vector<double> halves;  ///< the same with half of the images
  double image = 0;            ///< of an evaluated image, by one model; 0: there was no time for it
  double checkpoint = 0;       ///< of a checkpoint, until its file is there
  std::uint32_t train_images = 0, val_images = 0;
};

/// One training from its configuration to its last evaluation. What it computes depends on the trial, the
/// machine (see Machine) and nothing else: not on timing, checkpoints, stops or the number of loader threads.
/// With several ranks every one runs the same training on its share of each batch and of the evaluation; only
/// the first one's events are said and its clock and `stop` heeded. Thread: one.
class Training {
 public:
  /// Opens the data and builds the model; says `start`. Throws: Error, before anything is written.
  Training(TrainingOptions options, protocol::Events& events);

  /// Runs to the end, which the recipe's patience may bring forward, or until `stop` is raised: then it
  /// writes a checkpoint and returns false. What is written last is always a checkpoint, and it is there when
  /// this returns.
  /// Throws: Error{kAborted} naming step and metric, or step and tensor, where a loss, an evaluation or a
  /// weight is not finite.
  bool run(const std::atomic<bool>& stop);

  /// In place of `run`: takes steps, evaluates and writes a checkpoint for about `budget`, as `run` does. A
  /// step that has begun is finished. `halves`: takes steps with half of the images too, so that what larger
  /// batches take can be told. Nothing is learned that could be used.
  Pace measure(std::chrono::duration<double> budget, bool halves = false);

 private:
  void load_to(std::int64_t last);
  void expect_fits(const Checkpoint& checkpoint) const;
  void resume(protocol::Events::Start& start);
  void expect_same_data();
  void join_ranks();
  int loader_threads() const {
    return options_.loader_threads > 0 ? options_.loader_threads : options_.threads;
  }
  bool next_batch();
  bool advance();
  std::unique_ptr<StepGraph> new_graph() const;
  void step();
  void take_step();
  torch::Tensor sums() const;
  torch::Tensor finite_steps() const;
  void report();
  bool evaluate_if_due(const std::atomic<bool>& stop);
  bool evaluate_as(const std::string& split, torch::nn::Module& model, const std::atomic<bool>& stop);
  void say_predictions();
  void note_best(const std::string& metric, double value);
  void note_progress(const std::string& metric, double value);
  bool has_waited_enough() const;
  void say_why_it_ends();
  void say_profile();
  bool checkpoint_is_due() const;
  void hold();
  void write();
  void save_if_due();
  void save_last();

  const TrainingOptions options_;
  protocol::Events& events_;
  const torch::Device device_;
  std::unique_ptr<tasks::Task> task_;
  WeightDigests weights_;
  Length length_;
  std::unique_ptr<Learner> learner_;
  ranks::RankGroup& ranks_;
  ranks::BatchShare share_;
  ranks::RankStates states_;  ///< that the ranks begin with
  std::int64_t done_ = 0, evaluated_ = 0;
  std::int64_t seen_ = 0;      ///< images since the newest report
  std::int64_t reported_ = 0;  ///< the step of that, or from which this process counts
  ProgressReports reports_;
  StepProfile profile_;                               ///< of the first rank
  std::chrono::steady_clock::time_point written_at_;  ///< when the newest checkpoint was begun
  std::int64_t held_step_ = -1;    ///< of the newest state that was copied for a checkpoint
  bool is_held_ = false;           ///< it is not being written yet; all ranks know
  std::optional<double> best_;     ///< value of `keep_best`
  bool is_best_ = false;           ///< the newest evaluation's
  std::optional<double> to_beat_;  ///< best value of the recipe's patience_metric
  std::int64_t waited_ = 0;        ///< evaluations since that one
  CheckpointWriter writer_;        ///< of the first rank
};

}  // namespace abl::training
