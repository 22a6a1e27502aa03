// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/trial_choices.h"
#include "protocol/checkpoint_files.h"
#include "protocol/column.h"
#include "protocol/failure.h"
#include "protocol/metric_source.h"
#include "protocol/metrics.h"
#include "protocol/probes.h"
#include "protocol/split.h"
#include "sweeps/design.h"

namespace abl::sweeps {

/// A place in a sweep file, from 1; 0 where there is none.
struct Place {
  int line = 0, column = 0;
  bool operator==(const Place&) const = default;
};

/// One thing wrong with a sweep file.
///   text(): "file:line:column: field: message; did you mean 'nearest'?"
struct Problem {
  std::string file;
  Place place;
  std::string field;  ///< dotted: "base.model.attention.groups"
  std::string message;
  std::string nearest;
  std::string text() const;  ///< one line that can be printed, whatever the file has
};

/// Thrown by `parse_sweep` with every problem of the file, ordered by place; what() has a line for each.
class SweepFileError : public Error {
 public:
  explicit SweepFileError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// A column of the table.
struct Column {
  using Kind = protocol::ColumnKind;
  std::string name;     ///< "acc"; the key of the papers' values
  std::string heading;  ///< as printed; the name where nothing is said
  Kind kind = Kind::kMetric;
  std::string source;  ///< metric name, count mode ("params.weights"), dotted setting or expression
  protocol::Take take = protocol::Take::kLast;
  std::optional<protocol::Unit> unit;
  bool unit_fits = false;  ///< `unit`, which the file does not name, or a smaller one where all are small
  protocol::Better better = protocol::Better::kNone;
  std::optional<int> digits;  ///< after the point; none: as many as the values need
  bool cut = false;           ///< further digits are left out, as some papers do, in place of rounding
  std::optional<double> see;  ///< of a metric: the difference that seeds are to show, in the column's unit
};

/// Another row of the sweep whose weights a row takes, trial by trial.
struct RowSource {
  /// What it does with them: it begins with them, or learns from their model.
  enum class Role { kStart, kTeacher };
  Role role = Role::kStart;
  int row = 0;  ///< index into rows: this sweep's, or, behind those, the ones of other sweeps
  protocol::Taken take = protocol::Taken::kBest;
  std::optional<std::int64_t> seed{};  ///< of that row, for every seed; none: the same
  Place seed_place{};                  ///< where that is written: by the row, or by a rule of a scale
  std::string field{};                 ///< "rows.b.from", "scale.rules.2.from"
};
constexpr std::string_view name_of(RowSource::Role role) {
  switch (role) {
    case RowSource::Role::kStart:
      return "start";
    case RowSource::Role::kTeacher:
      return "teacher";
  }
  return {};
}

/// One line of the table: one setting of the factors.
struct Row {
  std::string id;  ///< unique in the sweep
  std::string label;
  std::map<std::string, std::string> set;            ///< dotted key -> value as text, for people
  std::map<std::string, std::string> paper;          ///< column name -> value as printed
  std::map<std::string, protocol::PaperMark> marks;  ///< column name -> how it is printed, of some of them
  std::string group;                                 ///< the heading that it stands under, or empty
  std::string baseline;  ///< id of the row that it is compared with, itself for a baseline; or empty
  /// Why it is not trained: it has no trials, and its configuration, where it has one, is for counting alone.
  std::optional<protocol::NotTrained> not_trained;
  std::string not_trained_why;
  std::string config;       ///< canonical JSON without the seed; of a command: argv, params, version
  std::string config_hash;  ///< its SHA-256
  std::string
      work_hash;  ///< of what in it takes time: all but real numbers of the recipe; empty for a command
  int result_version =
      0;                ///< of the trainer for this configuration; 0: a command, whose own is in its document
  std::string model;    ///< canonical model document for counting; empty for a command trial
  std::string teacher;  ///< of a recipe that distils: its teacher's document, as `model`; otherwise empty
  int batch = 0;        ///< images that a training step and its teacher take at once; 0 for a command trial
  int more_weights = 0;  ///< copies of the weights beside AdamW's two: a running average 1, SGD -1
  /// Of a training step; a command trial has none.
  config::Precision precision = config::Precision::kFloat32;
  std::string data;                            ///< logical name of its data set; empty for a command
  std::map<std::string, std::string> weights;  ///< that its recipe names -> SHA-256, or empty for any
  std::vector<RowSource> sources;              ///< weights of other rows: not in `weights`
  std::string sweep;   ///< another, whose row it is: here for its weights alone, in no table; or empty
  bool tuned = false;  ///< by `tune`, at what is best for it: until that is known it has no trials
  Place place;
};

/// `tune`: for each row the values of some keys are looked for that are best on images held out of train,
/// with the same points for each row; its seeds are trained at these values.
struct Tune {
  std::vector<TunedRange> ranges;
  Method method = Method::kSobol;
  Halving halving;  ///< of Method::kHalving
  int budget = 0;   ///< points of each row
  std::string metric;
  protocol::Better better = protocol::Better::kNone;
  std::vector<std::int64_t> seeds;  ///< of the trials of each point
  std::string held_out;             ///< `data.held_out` of these trials; empty for a command
  std::map<std::string, std::string>
      told;  ///< of a command: what these trials are told: params.split -> tune
  std::uint64_t design_seed = 0;
  bool search = false;  ///< `search`: the points are all there is, of one row with the id "search"

  std::string json() const;  ///< as it is stored
};

/// A row at one point of its tuning.
struct Candidate {
  int row = 0;  ///< index into rows
  int point = 0, rung = 0;
  bool planned = true;  ///< false: one more than get into its rung, where nothing is known of any
  Point values;
  std::string rung_value;  ///< of Halving::key; empty without rungs
  Row tried;               ///< what is trained with the tuning's seeds; its id is "ROW.p3", or "ROW.p3.r1"
  Row best;                ///< what the row becomes where these values are the best
};

/// `table.pivot`: rows that differ in one factor alone stand in one line.
struct Pivot {
  std::string by;                    ///< dotted key
  std::vector<std::string> columns;  ///< names of those that stand once for each level
  std::vector<std::string> with{};   ///< keys that vary together with it (`zip`)
  bool operator==(const Pivot&) const = default;
};

struct TableSpec {
  std::string baseline;  ///< row id, or empty; of rows with factors: of the row, whatever their levels
  std::map<std::string, std::string> baselines;  ///< group -> the same, in place of `baseline`
  std::string title;                             ///< "Which projections share a matrix", or empty
  std::vector<std::string> notes;                ///< below the table, a sentence or more each
  std::string paper_heading;                     ///< heads the papers' values: "paper: ImageNet, 100 epochs"
  std::string scale;  ///< "cifar": a smaller study in place of the file's own; `notes` say what that is
  std::vector<Column> columns;
  protocol::Compare compare;
  std::optional<Pivot> pivot;
  std::vector<std::string> show;  ///< what stands for each column: value, n, paper, difference
};

/// `seeds: {min, max, until}`: each row gets seeds until enough is known of it.
struct SeedRule {
  enum class Until {
    kInterval,  ///< "ci(acc) < 0.3": half of the interval of the mean is below `bound`
    kDecided,   ///< "decided(acc)": the difference to the baseline is settled
  };
  std::uint32_t min = 2, max = 2;
  Until until = Until::kInterval;
  std::string column;
  double bound = 0;

  std::string text() const;  ///< of `until`, as it is written in a file
  std::string json() const;  ///< as it is stored
  /// Throws: Error{kInvalidArgument} for a text that is none.
  static SeedRule parse(const std::string& json);
};

/// A program of the user's in place of the trainer.
struct Command {
  std::vector<std::string> argv;  ///< as written: a worker fills in {params.lr}, {seed}, {run_dir} and {data}
  std::string folder;             ///< absolute path of where it runs, or empty for the run's own folder
  std::string version;            ///< part of the identity
  std::vector<std::string>
      resume_argv{};         ///< behind argv where a run goes on from a checkpoint: {checkpoint}
  std::string checkpoint{};  ///< files in the run's folder that it writes as checkpoints, with `*` and `?`
  std::vector<protocol::MetricSource> metrics{};  ///< where its numbers are beside its events
  bool reuse = false;  ///< true: a completed trial of equal argv, params, version and seed is not run again
};

/// What a run may not exceed; 0: no limit.
struct Limits {
  std::chrono::seconds time{0};   ///< from the start of its program
  std::chrono::seconds stall{0};  ///< without a byte of output
  std::uint64_t log = 0;          ///< bytes of its log that are kept
  bool nan_fails = false;         ///< its first metric value that is not finite ends it
  bool any() const { return *this != Limits{}; }
  bool operator==(const Limits&) const = default;
};

struct SweepSpec {
  std::string name;
  std::string file, text;  ///< as read
  /// As written, or the product of the factors, the first varying slowest; then those of other sweeps.
  std::vector<Row> rows;
  std::vector<std::int64_t> seeds;  ///< with `seeds_rule`: all that a row may get
  std::optional<SeedRule> seeds_rule;
  std::optional<Tune> tune;
  std::vector<Candidate> candidates;  ///< of `tune`: by row, point and rung
  TableSpec table;
  int gpus = 0;           ///< that a trial needs, the most where fewer do too; 0: any one slot
  protocol::Split split;  ///< how these may be divided among workers
  bool pack = false;      ///< trials of one GPU or slot may share it, where their memory is known and fits
  /// Which workers will do: of each of these labels one of the values, none of those that begin with "!".
  std::map<std::string, std::vector<std::string>> where;
  int max_retries = 0;            ///< further attempts after a failure
  protocol::RetryRules retry_on;  ///< what holds in place of that after failures of some kinds
  Limits limits;
  std::vector<protocol::ProbeRequest> probes;  ///< that look into each trained model; no part of any identity
  std::optional<Command> command;
  /// Logical data name that its trials need, but for rows from which others start; empty for a command
  /// without data.
  std::string data;
  /// Everything above but `file` and `text`, as canonical JSON: equal specs have equal text. Its SHA-256
  /// identifies the sweep.
  std::string canonical;
  /// What the file may say and hardly means, a line each: a batch of more images than there are.
  std::vector<std::string> doubts;
};

/// One row with one seed: the unit that is queued.
struct TrialSpec {
  int row = 0;         ///< index into rows
  int seed_index = 0;  ///< index into seeds
  std::int64_t seed = 0;
  std::string config;       ///< canonical document with the seed
  std::string config_hash;  ///< its SHA-256: the first of the identity columns
  int result_version = 0;   ///< its row's: the second
  /// The weights of other trials that it takes.
  struct Source {
    std::string name;  ///< in its recipe: made of the other's identity
    protocol::Taken take = protocol::Taken::kBest;
    std::size_t trial = 0;  ///< index into what `expand` returns
  };
  std::vector<Source> sources;
};

/// A sweep file is written by people: what is larger than this is something else.
inline constexpr std::size_t kLargestFile = 4 << 20;
Problem too_large(const std::string& file, std::size_t bytes);

/// Parses and checks a sweep file. `folder`: the file's, absolute, where a command runs that names no other;
/// empty where it is not known. Throws: SweepFileError.
SweepSpec parse_sweep(const std::string& text, const std::string& file, const std::string& folder = {});

/// Every row with every seed, or as many as it has at first, seeds varying slowest: first the first seed of
/// every row. Rows that are tuned have none until their values are known.
std::vector<TrialSpec> expand(const SweepSpec& spec);

/// The trials by which the rows of a sweep with `tune` are tuned, as a sweep of their own: "NAME.tuning",
/// with a row for each candidate in the first rung and those behind them.
SweepSpec tuning_sweep(const SweepSpec& spec);

/// The canonical model documents that a plan counts, each once: those of the rows and of their teachers.
std::vector<std::string> models_of(const SweepSpec& spec);

/// How two specs under one name differ, a line each, for people: "rows.h.model.attention.share: QKKKW here,
/// QKVPW in the store".
std::vector<std::string> difference(const std::string& canonical_here, const std::string& canonical_stored);

}  // namespace abl::sweeps
