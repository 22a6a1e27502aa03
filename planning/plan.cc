// SPDX-License-Identifier: Apache-2.0
#include "planning/plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include "base/named_path.h"
#include "base/sha256.h"
#include "config/document/result_version.h"
#include "planning/plan_time.h"
#include "planning/printed_table.h"
#include "planning/step_memory.h"
#include "storage/sweep_store.h"
#include "storage/table.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"
#include "views/convert.h"
#include "views/forecast.h"

namespace abl::planning {
namespace v1 = ablate::v1;
namespace {

/// Where a trial of the plan stands in the store.
enum class Found { kNo, kStored, kUnderWay, kHeld, kBeforeMend };

Found found_as(storage::TrialState state) {
  switch (state) {
    case storage::TrialState::kCompleted:
      return Found::kStored;
    case storage::TrialState::kQueued:
    case storage::TrialState::kLeased:
    case storage::TrialState::kRunning:
      return Found::kUnderWay;
    case storage::TrialState::kHeld:
      return Found::kHeld;
    case storage::TrialState::kFailed:
    case storage::TrialState::kCancelled:
      return Found::kNo;  // they run again
  }
  return Found::kNo;
}

/// The data set of a row's trials: rows from which others start may have one of their own.
const std::string& data_of(const sweeps::SweepSpec& spec, const sweeps::Row& row) {
  return row.data.empty() ? spec.data : row.data;
}

Found look_up(storage::Database* db, const sweeps::SweepSpec& spec, const sweeps::TrialSpec& trial) {
  if (!db || (spec.command && !spec.command->reuse)) return Found::kNo;
  const auto& data = data_of(spec, spec.rows[static_cast<std::size_t>(trial.row)]);
  const auto same = storage::TrialStore{*db}.find_same(trial.config_hash, trial.result_version, data);
  if (!same) {
    const bool older =
        storage::TrialStore{*db}.find_before_mend(trial.config_hash, trial.result_version).has_value();
    return older ? Found::kBeforeMend : Found::kNo;
  }
  return found_as(same->state);
}

/// Where the trials of the sweep itself stand, by row and seed, where it is in the store with this very
/// content.
std::optional<std::map<std::pair<int, int>, Found>> own_trials(storage::Database* db,
                                                               const sweeps::SweepSpec& spec) {
  if (!db) return {};
  const storage::SweepStore store{*db};
  const auto sweep = store.find(spec.name);
  if (!sweep || sweep->canonical_hash != sha256_hex(spec.canonical)) return {};
  std::map<std::pair<int, int>, Found> found;
  for (const auto& claim : store.claims(sweep->id)) {
    found[{claim.row, claim.seed_index}] = found_as(claim.state);
  }
  return found;
}

/// Whether a connected worker lists the name. True also where no worker is connected at all: that says
/// nothing.
bool has_worker_with(storage::Database& db, std::string storage::WorkerRecord::*list,
                     const std::string& name) {
  bool connected = false;
  for (const auto& worker : storage::WorkerStore{db}.list()) {
    if (!worker.connected) continue;
    connected = true;
    if (const auto names = nlohmann::json::parse(worker.*list, nullptr, false);
        names.is_array() && std::ranges::find(names, nlohmann::json(name)) != names.end())
      return true;
  }
  return !connected;
}

}  // namespace

std::string missing_labels(const sweeps::SweepSpec& spec, storage::Database& db) {
  std::vector<storage::Labels> connected;
  for (const auto& worker : storage::WorkerStore{db}.list())
    if (worker.connected) connected.push_back(worker.labels);
  return connected.empty() ? std::string{} : storage::why_nobody_suits(spec.where, connected);
}

namespace {

/// What no connected worker has and the sweep needs.
std::vector<std::string> missing_files(const sweeps::SweepSpec& spec, storage::Database& db) {
  std::vector<std::string> notes;
  std::set<std::string> data{spec.data};
  for (const auto& row : spec.rows)
    if (!row.not_trained) data.insert(data_of(spec, row));
  data.erase("");
  for (const auto& name : data)
    if (!has_worker_with(db, &storage::WorkerRecord::data_json, name))
      notes.push_back(
          fmt::format("no connected worker has the data set {0}: start one with --data {0}=FOLDER", name));
  std::set<std::string> weights;
  for (const auto& row : spec.rows)
    for (const auto& [name, sha256] : row.weights)
      if (!row.not_trained) weights.insert(name);
  for (const auto& name : weights)
    if (!has_worker_with(db, &storage::WorkerRecord::weights_json, name))
      notes.push_back(fmt::format("no connected worker has the {} {}: start one with {}", kind_of_file(name),
                                  name_of_file(name), flag_of_file(name)));
  if (std::string nobody = missing_labels(spec, db); !nobody.empty()) notes.push_back(std::move(nobody));
  return notes;
}

/// Says when it would be complete, or will be where it was submitted. `left`: trials of each row. `seconds`:
/// of one of them, as predicted; 0: not known.
void set_forecast(const sweeps::SweepSpec& spec, storage::Database& db, const std::vector<double>& left,
                  const std::vector<double>& seconds, v1::SweepPlan& plan) {
  const Time now = SystemClock{}.now();
  if (plan.submitted()) {
    const auto sweep = storage::SweepStore{db}.get_brief(spec.name).id;
    std::map<std::string, double> predicted;
    for (std::size_t i = 0; i < spec.rows.size(); ++i)
      if (seconds[i] > 0) predicted.emplace(spec.rows[i].config_hash, seconds[i]);
    if (auto forecast = views::Forecasts{db, {sweep}, now, std::move(predicted)}.of(sweep))
      *plan.mutable_forecast() = *std::move(forecast);
    return;
  }
  storage::StoredDemand demand{.command = spec.command.has_value(),
                               .data = spec.data,
                               .gpus = spec.gpus,
                               .where = spec.where,
                               .split = spec.split};
  std::vector<storage::LeftOfRow> rows;
  std::map<std::string, double> predicted;
  for (std::size_t i = 0; i < spec.rows.size(); ++i) {
    const sweeps::Row& row = spec.rows[i];
    if (row.not_trained) continue;
    rows.push_back(
        {.id = row.id, .config_hash = row.config_hash, .work_hash = row.work_hash, .waiting = left[i]});
    for (const auto& source : row.sources)  // that are not stored
      if (const auto from = static_cast<std::size_t>(source.row); left[from] > 0)
        rows.back().after.push_back(spec.rows[from].id);
    if (seconds[i] > 0) predicted.emplace(row.config_hash, seconds[i]);
    demand.result_version = std::max(demand.result_version, row.result_version);
    demand.weights.insert(row.weights.begin(), row.weights.end());
  }
  if (std::ranges::any_of(left, [](double trials) { return trials > 0; }))
    *plan.mutable_forecast() =
        views::Forecasts{db, {}, now, std::move(predicted)}.of_new(std::move(rows), demand);
}

/// Fills in what the whole plan says of its rows' memory.
void sum_up_memory(const sweeps::SweepSpec& spec, v1::SweepPlan& plan) {
  for (const auto& row : plan.rows()) {
    if (!row.not_trained().empty()) continue;
    if (row.has_memory_bytes())
      plan.set_memory_bytes(std::max(plan.memory_bytes(), row.memory_bytes()));
    else if (spec.command)
      plan.set_memory_missing("unknown for command: trials");
    else
      plan.set_memory_missing(plan.counts_missing().empty() ? "not predicted by ablate-trainer"
                                                            : plan.counts_missing());
  }
}

/// In the unit that the table will have.
v1::Column count_column(const sweeps::SweepSpec& spec, const sweeps::Column& column,
                        const ModelCounter::Result& counts) {
  double largest = 0;
  for (const auto& row : spec.rows) {
    if (row.paper.contains(column.name)) largest = std::numeric_limits<double>::infinity();
    if (const auto model = counts.counts.find(row.model); model != counts.counts.end())
      if (const auto count = model->second.find(column.source); count != model->second.end())
        largest = std::max(largest, count->second);
  }
  storage::Column stored = stored_column(column);
  if (column.unit_fits) stored.unit = storage::fitting_unit(column.unit, largest);
  return views::to_proto(stored);
}

}  // namespace

namespace {

/// Rows that are tuned as they will be counted: what their values are makes no difference to how many trials
/// there are, and little to their time.
sweeps::SweepSpec with_seeds_of_tuned(sweeps::SweepSpec spec) {
  if (!spec.tune) return spec;  // of tuning trials not all points get into later rungs
  for (sweeps::Row& row : spec.rows) row.tuned = false;
  return spec;
}

/// The trials by which rows are tuned. Which points go on to a later rung is not known; as many as will.
v1::SweepPlan plan_of_tuning(const sweeps::SweepSpec& spec, storage::Database* db,
                             const ModelCounter::Result& counts,
                             const std::vector<storage::Calibration>& fresh) {
  sweeps::SweepSpec trials = sweeps::tuning_sweep(spec);
  for (std::size_t i = 0; i < trials.rows.size(); ++i) trials.rows[i].tuned = !spec.candidates[i].planned;
  v1::SweepPlan message = plan(trials, db, counts, fresh);
  message.clear_rows();
  message.clear_notes();
  message.clear_columns();
  return message;
}

}  // namespace

v1::SweepPlan plan(const sweeps::SweepSpec& spec, storage::Database* db, const ModelCounter::Result& counts,
                   const std::vector<storage::Calibration>& fresh) {
  std::optional<storage::Transaction> snapshot;
  if (db) snapshot.emplace(*db, storage::Transaction::kRead);
  v1::SweepPlan message;
  message.set_sweep(spec.name);
  message.set_seeds(static_cast<std::uint32_t>(spec.seeds.size()));
  message.set_counts_missing(counts.missing);
  message.set_gpus(static_cast<std::uint32_t>(spec.gpus));
  if (spec.split.any()) message.set_resources(spec.split.words(spec.gpus));
  for (const auto& doubt : spec.doubts) message.add_notes(doubt);
  if (spec.seeds_rule) {
    message.set_seeds(spec.seeds_rule->max);
    message.set_seeds_min(spec.seeds_rule->min);
    message.add_notes(
        fmt::format("each row begins with {0} seeds and gets up to {1}, until {2}; trials and times here are "
                    "of the first {0}",
                    spec.seeds_rule->min, spec.seeds_rule->max, spec.seeds_rule->text()));
  }
  for (const auto& column : spec.table.columns)
    if (column.kind == sweeps::Column::Kind::kCount)
      *message.add_columns() = count_column(spec, column, counts);
  const KnownOfPlace known = known_of_place(spec, db, counts.counts, fresh);
  message.set_memory_device(known.place.is_gpu() ? "cuda" : "cpu");
  std::map<std::string, std::string> first_row;  // config hash -> id
  for (const auto& row : spec.rows) {
    auto* line = message.add_rows();
    line->set_id(row.id);
    line->set_label(row.label);
    line->set_group(row.group);
    if (row.not_trained) line->set_not_trained(std::string{name_of(*row.not_trained)});
    line->set_not_trained_why(row.not_trained_why);
    line->mutable_set()->insert(row.set.begin(), row.set.end());
    if (const auto found = counts.counts.find(row.model); found != counts.counts.end())
      line->mutable_counts()->insert(found->second.begin(), found->second.end());
    if (row.not_trained) continue;
    if (const auto parts =
            trial_memory(row, counts.counts, spec.gpus, known.place, known.base_bytes, known.images)) {
      line->mutable_memory_parts()->insert(parts->begin(), parts->end());
      double sum = 0;
      for (const auto& [part, bytes] : *parts) sum += bytes;
      line->set_memory_bytes(sum);
    }
    line->set_config_hash(row.config_hash);
    const auto [first, is_first] = first_row.emplace(row.config_hash, row.id);
    if (!is_first) line->set_same_as(first->second);
    for (const auto& source : row.sources) {
      auto& from = *line->add_sources();
      from.set_role(std::string{name_of(source.role)});
      from.set_row(spec.rows[static_cast<std::size_t>(source.row)].id);
      from.set_take(std::string{name_of(source.take)});
      if (source.seed) from.set_seed(*source.seed);
    }
  }
  sum_up_memory(spec, message);
  std::map<std::string, Found> distinct;       // by identity
  std::vector<double> left(spec.rows.size());  // trials of each row that are to run
  std::set<int> mended;                        // versions of trials with results from before
  const auto own = own_trials(db, spec);
  message.set_submitted(own.has_value());
  for (const auto& trial : sweeps::expand(with_seeds_of_tuned(spec))) {
    const Found found = !own ? spec.tune ? Found::kNo : look_up(db, spec, trial)
                        : own->contains({trial.row, trial.seed_index})
                            ? own->at({trial.row, trial.seed_index})
                            : Found::kNo;  // at values that are not known yet
    auto* line = message.mutable_rows(trial.row);
    line->set_trials(line->trials() + 1);
    if (found == Found::kStored) line->set_stored(line->stored() + 1);
    if (found == Found::kUnderWay) line->set_under_way(line->under_way() + 1);
    if (found == Found::kBeforeMend) {
      line->set_before_mend(line->before_mend() + 1);
      mended.insert(trial.result_version);
    }
    const bool is_new = distinct.emplace(trial.config_hash, found).second;
    if (is_new && found != Found::kStored && found != Found::kHeld)
      ++left[static_cast<std::size_t>(trial.row)];
  }
  const auto seconds = set_times(spec, db, known, left, message);
  if (db) set_forecast(spec, *db, left, seconds, message);
  message.set_trials(static_cast<std::uint32_t>(distinct.size()));
  if (db)
    for (const auto& note : missing_files(spec, *db)) message.add_notes(note);
  for (const auto& [hash, found] : distinct) {
    if (found == Found::kStored) message.set_stored(message.stored() + 1);
    if (found == Found::kUnderWay) message.set_under_way(message.under_way() + 1);
    if (found == Found::kHeld) message.set_held(message.held() + 1);
    if (found == Found::kBeforeMend) message.set_before_mend(message.before_mend() + 1);
  }
  if (spec.tune) *message.mutable_tuning() = plan_of_tuning(spec, db, counts, fresh);
  if (message.held() > 0)
    message.add_notes(
        fmt::format("{} held and will not run; after submitting, release {} with 'ablate retry {} --held'",
                    message.held() == 1 ? "1 trial is" : fmt::format("{} trials are", message.held()),
                    message.held() == 1 ? "it" : "them", spec.name));
  for (const int version : mended)
    message.add_notes(fmt::format("results from before a correction will be trained again: {}",
                                  config::what_changed(version)));
  return message;
}

}  // namespace abl::planning
