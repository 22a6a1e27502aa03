// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "protocol/checkpoint_files.h"
#include "protocol/column.h"
#include "protocol/failure.h"
#include "protocol/metrics.h"
#include "protocol/split.h"

namespace abl::storage {

using Labels = std::map<std::string, std::string>;  ///< what a worker says of itself: gpu -> h100
/// Which workers will do: of each of these labels one of the values; none of those that begin with "!".
using Where = std::map<std::string, std::vector<std::string>>;

/// The command of a trial whose results were imported (storage/imported_results.h): nothing runs it.
inline constexpr std::string_view kImportedCommand = R"(["ablate-import"])";

using SweepId = std::uint32_t;
using TrialId = std::uint32_t;
using RunId = std::uint32_t;

/// Stored as these words.
enum class TrialState { kQueued, kLeased, kRunning, kCompleted, kFailed, kHeld, kCancelled };
enum class RunState { kLeased, kRunning, kCompleted, kFailed, kStopped, kLost };
enum class SweepState {
  kActive,
  kPaused,
  kCancelled
};  ///< what people set; completed and failed follow from the trials
std::string_view to_text(TrialState state);
std::string_view to_text(RunState state);
std::string_view to_text(SweepState state);
TrialState trial_state(std::string_view text);
RunState run_state(std::string_view text);
SweepState sweep_state(std::string_view text);

struct TrialCounts {
  std::uint32_t queued = 0, leased = 0, running = 0, completed = 0, failed = 0, held = 0, cancelled = 0;
  std::uint32_t unfilled = 0;  ///< of the completed: their runs lack a metric that a column takes
  std::uint32_t total() const { return open() + completed + failed + held + cancelled; }
  std::uint32_t open() const { return queued + leased + running; }
};

/// What makes two trials the same: three columns.
struct TrialIdentity {
  std::string config_hash;
  int result_version = 0;
  std::string data_fingerprint;  ///< empty until a worker has reported it
};

struct NewRow {
  std::string id, label, set_json, config_hash,
      model;                                    ///< `model`: canonical model document for counting, or empty
  std::string work_hash{};                      ///< of what in its configuration takes time, or empty
  std::map<std::string, std::string> paper;     ///< column name -> as printed
  std::map<std::string, std::string> levels{};  ///< what it shares with other rows: factor -> level
  std::map<std::string, protocol::PaperMark> marks{};  ///< column name -> how `paper` is printed
  std::string group{}, baseline{};                    ///< its heading; id of the row that it is compared with
  std::optional<protocol::NotTrained> not_trained{};  ///< it has no trials
  std::string not_trained_why{};
  std::string other_sweep{};  ///< whose row it is, in no table; or empty
};
struct Column {
  using Kind = protocol::ColumnKind;
  std::string name, heading;
  Kind kind = Kind::kMetric;
  std::string source;
  protocol::Take take = protocol::Take::kLast;
  std::optional<protocol::Unit> unit;
  protocol::Better better = protocol::Better::kNone;
  std::optional<int> digits = 2;  ///< after the point; none: as many as the values need
  bool unit_fits = false;         ///< `unit`, or a smaller one where all values are small
  bool cut = false;               ///< further digits are left out in place of rounding
};
/// Beyond it nothing of a sweep is leased.
struct Budget {
  std::optional<Milliseconds> gpu_time;  ///< of its runs, times their GPUs
  std::optional<Time> until;             ///< by the wall clock
  bool operator==(const Budget&) const = default;
};
struct NewSweep {
  std::string name, file, text, canonical, canonical_hash, baseline, paper_heading;
  std::vector<NewRow> rows;
  std::vector<Column> columns;
  std::vector<std::int64_t> seeds;
  std::string seeds_rule{};  ///< sweeps::SeedRule as JSON; or empty: each row has every seed
  std::string probes{};      ///< that look into its trained models, as `probes_json` has them
  int priority = 0;
  std::string owner;                         ///< who submits it
  double weight = 1;                         ///< against its owner's other sweeps
  std::optional<std::uint32_t> max_running;  ///< trials under way at once
  bool preempts = false;                     ///< runs of lower priority give way to its trials
  bool breaker = false;  ///< trials are held that share what fails (storage/breaker_store.h)
  Budget budget{};
};
/// Weights of another trial that one takes, by that one's identity.
struct NewSource {
  std::string name;  ///< in its recipe
  protocol::Taken take = protocol::Taken::kBest;
  std::string config_hash, data;
  int result_version = 0;
};
/// A row with a seed, as submitted.
struct NewTrial {
  int row = 0, seed_index = 0;
  std::int64_t seed = 0;
  std::string config, config_hash;  ///< canonical document with the seed
  int result_version = 0;           ///< of the trainer for this document; 0 for a command
  std::string data;                 ///< logical data name, or empty
  std::string command_json;         ///< argv of a command trial, as a JSON list; empty for the trainer
  bool reusable = true;             ///< false: never the same as another (a command without `reuse`)
  int gpus = 0, max_retries = 0;
  protocol::Split split{};                             ///< how its slots may be divided among workers
  protocol::RetryRules retry_on{};                     ///< what holds in place of `max_retries`
  std::chrono::seconds time_limit{0}, stall_limit{0};  ///< of a run; 0: none
  std::uint64_t log_limit = 0;                         ///< of a run's log, in bytes; 0: its worker's
  bool nan_fails = false;                              ///< a metric value that is not finite ends a run
  std::map<std::string, std::string> weights;  ///< that the recipe names -> SHA-256 it wants, or empty
  Where where;
  std::string
      pack{};  ///< its runs may share a GPU: the hash of its row's configuration without the seed; or empty
  std::vector<NewSource> sources{};  ///< of the same sweep; not in `weights`
};

/// How far the tuning of a sweep's rows is: by the trials of another sweep (storage/tuning_store.h).
struct TuningProgress {
  SweepId by = 0;
  std::string name;                              ///< of that sweep
  TrialCounts trials;                            ///< of that sweep
  std::uint32_t rows = 0, open = 0, failed = 0;  ///< as in the table sweep_tuning
};
struct SweepRecord {
  SweepId id = 0;
  std::string name, file, text, canonical, canonical_hash, baseline, paper_heading;
  SweepState state = SweepState::kActive;
  int priority = 0;
  std::string owner;
  double weight = 1;
  std::optional<std::uint32_t> max_running;
  bool preempts = false, breaker = false;
  bool canary = false;             ///< a few of its trials run first: none has got through yet
  std::vector<std::string> holds;  ///< why trials are held that share what fails
  std::uint32_t rows = 0, seeds = 0;
  std::uint32_t revision = 1;  ///< of its content: one more with each extension
  std::string seeds_rule;      ///< as of NewSweep
  std::string probes;          ///< the same
  Budget budget;
  Milliseconds gpu_time{};  ///< that its ended runs took
  std::string spent;        ///< why nothing of it is leased any more though it is active, or empty
  TrialCounts trials;       ///< a claim withdrawn before its trial ended is cancelled
  std::optional<TuningProgress> tuning;
  std::string tunes;  ///< the sweep whose rows its trials tune, or empty
  std::vector<std::string> tags;
  bool pinned = false;
  std::optional<Time> archived;  ///< lists leave it out since then
  Time created{};
  std::optional<Time> finished;
  /// Whether a trial of it, or of its tuning, waits or runs.
  bool is_open() const { return trials.open() > 0 || (tuning && tuning->trials.open() > 0); }
};

/// A queued, leased or finished trial.
struct TrialRecord {
  TrialId id = 0;
  TrialIdentity identity;
  std::string config, data, command_json;
  int gpus = 0, max_retries = 0;
  int failures = 0;                   ///< that count against `max_retries`
  std::string retry_on{}, retried{};  ///< rules, and the failures that they count, as they are stored
  std::chrono::seconds time_limit{0}, stall_limit{0};  ///< of a run; 0: none
  std::uint64_t log_limit = 0;                         ///< of a run's log, in bytes; 0: its worker's
  bool nan_fails = false;
  std::string pack{};  ///< as of NewTrial
  int losses = 0;      ///< runs lost one after the other, none further than those before
  int deaths = 0;  ///< of them, those that were all that their worker had when it died, or left it in trouble
  TrialState state = TrialState::kQueued;
  std::string reason;  ///< why it failed or is held; why it waits is the scheduler's to say
                       ///< (`TrialStore::set_waiting`)
  std::int64_t seed = 0;
  int attempt = 0;                     ///< of its newest run, 0 before the first
  std::optional<RunId> run;            ///< its newest run
  Time not_before{};                   ///< back-off after a failure or a loss; by the steady clock
  bool reusable = true;                ///< false: no other sweep may share it
  std::optional<TrialId> replaced_by;  ///< the trial that runs it again, since its results lacked something
  int due_version = 0;                 ///< the result version that it would have today
  bool before_mend() const { return identity.result_version < due_version; }
};

/// What a trial of an older result version becomes when it is trained again: its document may have changed
/// with the version.
struct RenewedTrial {
  std::string config, config_hash;
  int result_version = 0;
};
using Renew = std::function<RenewedTrial(const TrialRecord&)>;

/// How fast a trial's newest run goes.
struct Pace {
  TrialId trial = 0;
  TrialState state = TrialState::kQueued;
  std::uint32_t step = 0, total_steps = 0;
  double steps_per_second = 0;
};

/// A trial as one sweep sees it; without its configuration, which lists of trials do not show.
struct ClaimRecord {
  TrialId trial = 0;
  TrialState state = TrialState::kQueued;
  std::string reason, config_hash;
  int attempt = 0;
  std::optional<RunId> run;  ///< its newest run
  int result_version = 0, due_version = 0;
  bool before_mend() const { return result_version < due_version; }
  int row = 0, seed_index = 0;
  std::string row_id, label;
  std::int64_t seed = 0;
  bool shared = false;  ///< another sweep claims it too
  std::string worker;
  std::uint32_t step = 0, total_steps = 0;
  double steps_per_second = 0;
  bool unfilled = false;  ///< completed, and its run lacks a metric that a column of the sweep takes
  std::optional<protocol::FailureClass> failure;  ///< of the newest run, where it failed or was lost
  std::uint32_t refused_lines = 0;                ///< of the newest run
  std::string refused_example;
  std::uint32_t repeated_points = 0;
  std::map<std::string, double> last;  ///< last value of each metric of the newest run
  std::uint32_t metrics_left_out = 0;  ///< of these, where there are too many for all trials of an answer
};

struct Lease {
  RunId run = 0;
  TrialId trial = 0;
  int attempt = 0;
  Time expires{};     ///< by the steady clock
  std::string token;  ///< tells the run from one of the same number that a copy of the results file was given
};

struct CheckpointRecord {
  RunId run = 0;
  std::uint32_t step = 0;
  std::string host, path, sha256;
  std::string best{};  ///< of the best evaluation so far: where the same file stays; empty: it is not
};

struct MetricSummary {
  std::string name;
  std::uint32_t count = 0, finite = 0;  ///< points, and those that are finite
  double min = 0, max = 0, mean = 0, last = 0;
  double best = 0;  ///< min or max: as the columns that take this metric agree, otherwise by its name
  std::uint32_t min_step = 0, max_step = 0, last_step = 0, best_step = 0;
};

struct RunRecord {
  RunId id = 0;
  TrialId trial = 0;
  int attempt = 0;
  RunState state = RunState::kLeased;
  std::string worker, host, directory, reason, environment_json;
  std::string stop_reason;  ///< why it was asked to stop, or empty
  std::string token;        ///< as in Lease; empty for a run of an older store
  bool silent = false;      ///< lost because its lease ran out: its worker may still have it
  bool alone = false;       ///< its worker died while it had no other run
  Time leased{};
  std::optional<Time> started, ended;
  Time lease_expires{};  ///< by the steady clock
  std::uint32_t step = 0, total_steps = 0;
  double steps_per_second = 0;
  std::optional<std::uint32_t> resumed_from_step;
  bool bit_exact = true;
  std::optional<int> exit_code, signal;
  std::optional<protocol::FailureClass> failure;  ///< of a failed or lost one
  std::string failure_rule;                       ///< what of its trial's rules decided that, or empty
  std::uint64_t last_seq = 0;                     ///< newest batch stored
  std::uint64_t log_bytes = 0;
  std::uint32_t refused_lines = 0;    ///< of its output, meant as metrics and not readable as such
  std::string refused_example;        ///< one of them, and what is wrong with it
  std::uint32_t repeated_points = 0;  ///< not kept: their steps had another value already
  std::uint32_t packed_with = 0;      ///< other runs on its GPU, as many as there were at once
  std::optional<Milliseconds> took;   ///< from the start of its program to its end, as its worker measured
};

struct Series {
  std::string name;
  std::vector<std::uint32_t> steps;  ///< ascending
  std::vector<double> values;        ///< NaN and infinities are kept
  std::vector<std::int64_t> times_ms;
};

}  // namespace abl::storage
