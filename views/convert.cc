// SPDX-License-Identifier: Apache-2.0
#include "views/convert.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "config/document/result_version.h"
#include "protocol/number.h"
#include "views/comparison.h"
#include "views/eta.h"
#include "views/table_notes.h"
#include "views/tuning.h"

namespace abl::views {
namespace v1 = ablate::v1;

google::protobuf::Timestamp to_proto(Time time) {
  return google::protobuf::util::TimeUtil::MillisecondsToTimestamp(time.time_since_epoch().count());
}

v1::TrialState to_proto(storage::TrialState state) {
  switch (state) {
    case storage::TrialState::kQueued:
      return v1::TRIAL_STATE_QUEUED;
    case storage::TrialState::kLeased:
      return v1::TRIAL_STATE_LEASED;
    case storage::TrialState::kRunning:
      return v1::TRIAL_STATE_RUNNING;
    case storage::TrialState::kCompleted:
      return v1::TRIAL_STATE_COMPLETED;
    case storage::TrialState::kFailed:
      return v1::TRIAL_STATE_FAILED;
    case storage::TrialState::kHeld:
      return v1::TRIAL_STATE_HELD;
    case storage::TrialState::kCancelled:
      return v1::TRIAL_STATE_CANCELLED;
  }
  return v1::TRIAL_STATE_UNSPECIFIED;
}

v1::RunState to_proto(storage::RunState state) {
  switch (state) {
    case storage::RunState::kLeased:
      return v1::RUN_STATE_LEASED;
    case storage::RunState::kRunning:
      return v1::RUN_STATE_RUNNING;
    case storage::RunState::kCompleted:
      return v1::RUN_STATE_COMPLETED;
    case storage::RunState::kFailed:
      return v1::RUN_STATE_FAILED;
    case storage::RunState::kStopped:
      return v1::RUN_STATE_STOPPED;
    case storage::RunState::kLost:
      return v1::RUN_STATE_LOST;
  }
  return v1::RUN_STATE_UNSPECIFIED;
}

v1::FailureClass to_proto(std::optional<protocol::FailureClass> failure) {
  if (!failure) return v1::FAILURE_CLASS_UNSPECIFIED;
  switch (*failure) {
    case protocol::FailureClass::kInfrastructure:
      return v1::FAILURE_CLASS_INFRASTRUCTURE;
    case protocol::FailureClass::kResources:
      return v1::FAILURE_CLASS_RESOURCES;
    case protocol::FailureClass::kTrial:
      return v1::FAILURE_CLASS_TRIAL;
    case protocol::FailureClass::kData:
      return v1::FAILURE_CLASS_DATA;
  }
  return v1::FAILURE_CLASS_UNSPECIFIED;
}

v1::SweepState state_of(const storage::SweepRecord& sweep) {
  if (sweep.state == storage::SweepState::kCancelled) return v1::SWEEP_STATE_CANCELLED;
  if (sweep.is_open())
    return sweep.state == storage::SweepState::kPaused ? v1::SWEEP_STATE_PAUSED : v1::SWEEP_STATE_ACTIVE;
  if (sweep.tuning && sweep.tuning->open > 0)  // its tuning cannot go on
    return sweep.tuning->trials.held > 0 ? v1::SWEEP_STATE_HELD : v1::SWEEP_STATE_CANCELLED;
  if (sweep.tuning && sweep.tuning->failed > 0) return v1::SWEEP_STATE_FAILED;
  if (sweep.trials.completed == sweep.trials.total())
    return sweep.trials.unfilled > 0 ? v1::SWEEP_STATE_INCOMPLETE : v1::SWEEP_STATE_COMPLETED;
  if (sweep.trials.held > 0) return v1::SWEEP_STATE_HELD;  // somebody has to look at it
  return sweep.trials.failed > 0 ? v1::SWEEP_STATE_FAILED : v1::SWEEP_STATE_CANCELLED;  // one row was retried
}

v1::TrialCounts to_proto(const storage::TrialCounts& counts) {
  v1::TrialCounts message;
  message.set_total(counts.total());
  message.set_queued(counts.queued);
  message.set_leased(counts.leased);
  message.set_running(counts.running);
  message.set_completed(counts.completed);
  message.set_failed(counts.failed);
  message.set_cancelled(counts.cancelled);
  message.set_held(counts.held);
  message.set_unfilled(counts.unfilled);
  return message;
}

v1::TrialSummary to_proto(const storage::ClaimRecord& claim) {
  v1::TrialSummary message;
  message.set_id(claim.trial);
  message.set_row(claim.row_id);
  message.set_label(claim.label);
  message.set_seed(claim.seed);
  message.set_state(to_proto(claim.state));
  message.set_reason(claim.reason);
  message.set_attempt(static_cast<std::uint32_t>(claim.attempt));
  message.set_run(claim.run.value_or(0));
  message.set_worker(claim.worker);
  message.set_step(claim.step);
  message.set_total_steps(claim.total_steps);
  message.set_steps_per_second(claim.steps_per_second);
  if (const auto eta = trial_eta({.trial = claim.trial,
                                  .state = claim.state,
                                  .step = claim.step,
                                  .total_steps = claim.total_steps,
                                  .steps_per_second = claim.steps_per_second}))
    message.set_eta_seconds(*eta);
  message.mutable_last()->insert(claim.last.begin(), claim.last.end());
  message.set_metrics_left_out(claim.metrics_left_out);
  message.set_shared(claim.shared);
  message.set_config_hash(claim.config_hash);
  if (claim.state == storage::TrialState::kCompleted && claim.before_mend())
    message.set_before_mend(config::what_changed(claim.due_version));
  message.set_unfilled(claim.unfilled);
  message.set_failure(to_proto(claim.failure));
  message.set_refused_lines(claim.refused_lines);
  message.set_refused_example(claim.refused_example);
  message.set_repeated_points(claim.repeated_points);
  return message;
}

v1::SweepRevision to_proto(const storage::SweepRevision& revision) {
  v1::SweepRevision message;
  message.set_revision(revision.revision);
  *message.mutable_time() = to_proto(revision.time);
  message.set_by(revision.author);
  message.set_file(revision.file);
  message.set_text_sha256(revision.text_sha256);
  for (const auto& change : nlohmann::json::parse(revision.changes_json))
    message.add_changes(change.get<std::string>());
  message.set_new_trials(revision.new_trials);
  message.set_former_trials(revision.former_trials);
  return message;
}

v1::RunSummary to_proto(const storage::RunRecord& run) {
  v1::RunSummary message;
  message.set_id(run.id);
  message.set_trial(run.trial);
  message.set_attempt(static_cast<std::uint32_t>(run.attempt));
  message.set_state(to_proto(run.state));
  message.set_worker(run.worker);
  message.set_host(run.host);
  *message.mutable_leased() = to_proto(run.leased);
  if (run.started) *message.mutable_started() = to_proto(*run.started);
  if (run.ended) *message.mutable_ended() = to_proto(*run.ended);
  message.set_reason(run.reason);
  message.set_failure(to_proto(run.failure));
  message.set_failure_rule(run.failure_rule);
  message.set_step(run.step);
  message.set_total_steps(run.total_steps);
  message.set_steps_per_second(run.steps_per_second);
  if (run.resumed_from_step) message.set_resumed_from_step(*run.resumed_from_step);
  message.set_bit_exact(run.bit_exact);
  message.set_refused_lines(run.refused_lines);
  message.set_refused_example(run.refused_example);
  message.set_repeated_points(run.repeated_points);
  message.set_packed_with(run.packed_with);
  if (run.took) message.set_took_seconds(static_cast<double>(run.took->count()) / 1000);
  return message;
}

v1::MetricSummary to_proto(const storage::MetricSummary& summary) {
  v1::MetricSummary message;
  message.set_name(summary.name);
  message.set_count(summary.count);
  message.set_min(summary.min);
  message.set_max(summary.max);
  message.set_mean(summary.mean);
  message.set_last(summary.last);
  message.set_last_step(summary.last_step);
  message.set_best(summary.best);
  message.set_best_step(summary.best_step);
  message.set_finite(summary.finite);
  return message;
}

v1::Series to_proto(const storage::Series& series) {
  v1::Series message;
  message.set_name(series.name);
  message.mutable_steps()->Add(series.steps.begin(), series.steps.end());
  message.mutable_values()->Add(series.values.begin(), series.values.end());
  message.mutable_times_ms()->Add(series.times_ms.begin(), series.times_ms.end());
  return message;
}

v1::Checkpoint to_proto(const storage::CheckpointRecord& checkpoint) {
  v1::Checkpoint message;
  message.set_step(checkpoint.step);
  message.set_host(checkpoint.host);
  message.set_path(checkpoint.path);
  message.set_sha256(checkpoint.sha256);
  message.set_best(checkpoint.best);
  message.set_run(checkpoint.run);
  return message;
}

namespace {

v1::Column::Kind kind_of(storage::Column::Kind kind) {
  switch (kind) {
    case storage::Column::Kind::kMetric:
      return v1::Column::KIND_METRIC;
    case storage::Column::Kind::kCount:
      return v1::Column::KIND_COUNT;
    case storage::Column::Kind::kSetting:
      return v1::Column::KIND_SETTING;
    case storage::Column::Kind::kExpression:
      return v1::Column::KIND_EXPRESSION;
    case storage::Column::Kind::kPrinted:
      return v1::Column::KIND_PRINTED;
  }
  return v1::Column::KIND_UNSPECIFIED;
}

void describe(const storage::Column& column, v1::Column& message) {
  message.set_name(column.name);
  message.set_heading(column.heading);
  message.set_kind(kind_of(column.kind));
  message.set_source(column.source);
  message.set_take(std::string{name_of(column.take)});
  message.set_unit(std::string{name_of(column.unit)});
  message.set_better(std::string{name_of(column.better)});
  message.set_cut(column.cut);
  message.clear_digits();
  if (column.digits) message.set_digits(static_cast<std::uint32_t>(*column.digits));
}

}  // namespace

v1::Column to_proto(const storage::Column& column) {
  v1::Column message;
  describe(column, message);
  return message;
}

namespace {

/// What a sweep says of its table and columns goes into the fields of that name. What the store makes
/// something of is filled in afterwards; what is of another release, and another kind, is left out.
v1::Table as_submitted(const std::string& attributes_json) {
  v1::Table message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  if (!google::protobuf::util::JsonStringToMessage(attributes_json, &message, options).ok()) message.Clear();
  return message;
}

void write_cell(const storage::Cell& cell, v1::Cell& message) {
  if (cell.mean) message.set_mean(*cell.mean);
  if (cell.sd) message.set_sd(*cell.sd);
  message.set_n(cell.n);
  message.set_of(cell.of);
  message.set_text(cell.text);
  message.set_paper(cell.paper);
  if (cell.mark) {
    message.set_paper_mark(std::string{name_of(cell.mark->mark)});
    message.set_paper_why(cell.mark->why);
  }
  message.set_missing(cell.missing);
  message.mutable_diverged()->Add(cell.diverged.begin(), cell.diverged.end());
  message.set_unfilled(cell.unfilled);
  message.set_before_mend(cell.before_mend);
  message.set_packed(cell.packed);
  if (cell.older > 0) {
    message.set_older(cell.older);
    message.set_older_version(cell.older_version);
  }
  for (const auto& value : cell.values) {
    auto* run = message.add_runs();
    run->set_run(value.run);
    run->set_trial(value.trial);
    run->set_seed(value.seed);
    run->set_value(value.value);
    run->set_not_finite(value.not_finite);
    run->set_packed_with(value.packed_with);
  }
}

}  // namespace

namespace {

/// "+0.35": what is shown less what the paper prints, in the fewer digits of both, so that it is the
/// difference of the two as they stand there. Empty where one of them is no number.
std::string paper_difference(const storage::Cell& cell, const std::optional<protocol::Unit>& unit) {
  if (cell.paper.empty() || !cell.mean || !std::isfinite(*cell.mean)) return {};
  const auto paper = protocol::printed_number(cell.paper), ours = protocol::printed_number(cell.text);
  if (!paper || !ours) return {};
  const int digits = std::min(paper->digits, ours->digits);
  const auto shown = [&](const protocol::Printed& number, double exact,
                         const std::optional<protocol::Unit>& in) {
    if (number.digits == digits) return number.value;
    const auto fewer = protocol::printed_number(storage::format_cell(exact, std::nullopt, digits, in));
    return fewer ? fewer->value : number.value;
  };
  const double difference = shown(*ours, *cell.mean, unit) - shown(*paper, paper->value, std::nullopt);
  if (std::abs(difference) < 0.5 * std::pow(10, -digits)) return fmt::format("{:.{}f}", 0.0, digits);
  return fmt::format("{:+.{}f}", difference, digits);
}

/// Of a sweep to which seeds are added by a rule: the looks that are taken (scheduler/seed_growth.h).
void add_sequential(const storage::Table& table, v1::Table& message) {
  if (table.seeds_rule.empty()) return;
  const auto rule = nlohmann::json::parse(table.seeds_rule);
  const auto until = rule.at("until").get<std::string>();
  const auto min = rule.at("min").get<std::uint32_t>(), max = rule.at("max").get<std::uint32_t>();
  v1::Sequential& sequential = *message.mutable_sequential();
  sequential.set_looks(max - min + 1);
  sequential.set_min(min);
  sequential.set_spending("pocock");
  for (const std::int64_t seed : table.seeds) sequential.add_seeds(seed);
  const auto open = until.find('('), close = until.find(')');
  sequential.set_column(until.substr(open + 1, close - open - 1));
  sequential.set_legend(
      fmt::format("seeds were added until {} ({} to {} a row): p-values and intervals are sequential, they "
                  "allow for all {} "
                  "looks that were planned (alpha spending, Pocock)",
                  until, min, max, sequential.looks()));
  message.add_notes(sequential.legend());
}

/// `done`: called with the index of a row that was converted.
void write_table(const storage::Table& table, StatisticsMemo* memo, v1::Table& message,
                 const std::function<void(std::size_t)>& done) {
  message = as_submitted(table.attributes_json);
  message.set_sweep(table.sweep);
  message.set_baseline(table.baseline);
  message.set_paper_heading(table.paper_heading);
  for (const auto& note : table_notes(table))
    message.add_notes(note);  // before `done`, which takes rows away
  const storage::ExpressionColumns expressions{table.columns};
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    auto* column = static_cast<int>(i) < message.columns_size() ? message.mutable_columns(static_cast<int>(i))
                                                                : message.add_columns();
    describe(table.columns[i], *column);
    column->set_per_seed(expressions.per_seed(i));
    column->set_has_paper(
        std::ranges::any_of(table.rows, [i](const auto& row) { return !row.cells[i].paper.empty(); }));
  }
  std::size_t tuned = 0;  // the next of those, which are in the rows' order
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    auto* line = message.add_rows();
    line->set_id(row.id);
    line->set_label(row.label);
    line->set_group(row.group);
    line->set_baseline(row.baseline);
    if (row.not_trained) line->set_not_trained(std::string{name_of(*row.not_trained)});
    line->set_not_trained_why(row.not_trained_why);
    line->set_line(row.line);
    line->set_line_label(row.line_label);
    line->set_level(row.level);
    line->set_planned(row.planned);
    line->set_imported(row.imported);
    if (tuned < table.tuned.size() && table.tuned[tuned].row == row.id)
      line->set_tuned(tuned_text(table.tuned[tuned++]));
    *line->mutable_trials() = to_proto(row.trials);
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      v1::Cell& cell = *line->add_cells();
      write_cell(row.cells[column], cell);
      if (!table.seeds_rule.empty()) cell.set_settled(row.settled);
      if (!row.imported.empty() && !row.cells[column].values.empty()) cell.set_imported(cell.n());
      cell.set_paper_difference(paper_difference(row.cells[column], table.columns[column].unit));
    }
    done(i);
  }
  for (const auto& note : tuning_notes(table.tune_json, table.tuned)) message.add_notes(note);
  message.set_search(!table.tune_json.empty() && tuning_head(table.tune_json).search());
  message.set_tuned(!table.tune_json.empty());
  add_sequential(table, message);
  compare_cells(message, memo);
}

}  // namespace

void to_proto(const storage::Table& table, StatisticsMemo* memo, v1::Table& message) {
  write_table(table, memo, message, [](std::size_t) {});
}

v1::Table to_proto(const storage::Table& table, StatisticsMemo* memo) {
  v1::Table message;
  to_proto(table, memo, message);
  return message;
}

/// A table may have 100,000 rows, and would be there twice.
v1::Table to_proto(storage::Table&& table) {
  v1::Table message;
  write_table(table, nullptr, message, [&](std::size_t row) { table.rows[row].cells = {}; });
  return message;
}

}  // namespace abl::views
