// SPDX-License-Identifier: Apache-2.0
// How a sweep and its claims on trials are stored.
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/sha256.h"
#include "storage/breaker_store.h"
#include "storage/chain_store.h"
#include "storage/imported_results.h"
#include "storage/queue_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/unfilled.h"
#include "storage/weights_store.h"

namespace abl::storage {
namespace {

void insert_row(Database& db, SweepId sweep, int position, const NewRow& row) {
  db.prepared(
        R"sql(INSERT INTO sweep_row (sweep_id, position, id, label, set_json, config_hash, model_hash, work_hash,
                                           heading, baseline, not_trained, not_trained_why, other_sweep)
                    VALUES (:sweep, :position, :id, :label, :set, :config_hash, :model_hash, :work_hash,
                            :heading, :baseline, :not_trained, :why, :other))sql")
      .bind(":sweep", sweep)
      .bind(":position", position)
      .bind(":id", row.id)
      .bind(":label", row.label)
      .bind(":set", row.set_json.empty() ? "{}" : std::string_view{row.set_json})
      .bind(":config_hash", row.config_hash)
      .bind(":model_hash", row.model.empty() ? "" : sha256_hex(row.model))
      .bind(":work_hash", row.work_hash)
      .bind(":heading", row.group)
      .bind(":baseline", row.baseline)
      .bind(":not_trained", row.not_trained ? name_of(*row.not_trained) : std::string_view{})
      .bind(":why", row.not_trained_why)
      .bind(":other", row.other_sweep)
      .run();
  for (const auto& [name, printed] : row.paper) {
    const auto mark = row.marks.find(name);
    const bool is_marked = mark != row.marks.end();
    db.prepared(
          "INSERT INTO sweep_paper (sweep_id, row, name, printed, mark, why) VALUES (:sweep, :row, :name, "
          ":printed, "
          ":mark, :why)")
        .bind(":sweep", sweep)
        .bind(":row", position)
        .bind(":name", name)
        .bind(":printed", printed)
        .bind(":mark", is_marked ? name_of(mark->second.mark) : std::string_view{})
        .bind(":why", is_marked ? std::string_view{mark->second.why} : std::string_view{})
        .run();
  }
}

void insert_column(Database& db, SweepId sweep, int position, const Column& column) {
  db.prepared(
        R"sql(INSERT INTO sweep_column (sweep_id, position, name, heading, kind, source, take, unit, unit_fits, better, digits, cut)
                    VALUES (:sweep, :position, :name, :heading, :kind, :source, :take, :unit, :unit_fits, :better, :digits, :cut))sql")
      .bind(":sweep", sweep)
      .bind(":position", position)
      .bind(":name", column.name)
      .bind(":heading", column.heading)
      .bind(":kind", name_of(column.kind))
      .bind(":source", column.source)
      .bind(":take", name_of(column.take))
      .bind(":unit", name_of(column.unit))
      .bind(":unit_fits", column.unit_fits)
      .bind(":better", name_of(column.better))
      .bind(":digits", column.digits.value_or(-1))
      .bind(":cut", column.cut)
      .run();
}

TrialId insert_trial(Database& db, const NewTrial& trial, const std::string& fingerprint, ShapeId shape) {
  db.prepared(
        R"sql(INSERT INTO trial (id, config_hash, result_version, due_version, data_fingerprint, reusable, config, seed, data, command_json, gpus,
                                       max_retries, time_limit_s, stall_limit_s, state, shape_id, where_json,
                                       retry_on, log_limit_bytes, nan_fails, pack, split)
                    VALUES ((SELECT last_trial + 1 FROM store WHERE last_trial >= COALESCE((SELECT MAX(id) FROM trial), 0)),
                            :config_hash, :result_version, :result_version, :fingerprint, :reusable, :config, :seed, :data, :command, :gpus,
                            :max_retries, :time_limit, :stall_limit, 'queued', :shape, :where, :retry_on, :log_limit, :nan_fails, :pack, :split))sql")
      .bind(":config_hash", trial.config_hash)
      .bind(":result_version", trial.result_version)
      .bind(":fingerprint", fingerprint)
      .bind(":reusable", trial.reusable)
      .bind(":config", trial.config)
      .bind(":seed", trial.seed)
      .bind(":data", trial.data)
      .bind(":command", trial.command_json)
      .bind(":gpus", trial.gpus)
      .bind(":max_retries", trial.max_retries)
      .bind(":retry_on", protocol::to_text(trial.retry_on))
      .bind(":log_limit", static_cast<std::int64_t>(trial.log_limit))
      .bind(":nan_fails", trial.nan_fails)
      .bind(":pack", trial.pack)
      .bind(":split", trial.split.text())
      .bind(":time_limit", std::int64_t{trial.time_limit.count()})
      .bind(":stall_limit", std::int64_t{trial.stall_limit.count()})
      .bind(":shape", shape)
      .bind(":where", trial.where.empty() ? std::string{} : nlohmann::json(trial.where).dump())
      .run();
  return static_cast<TrialId>(db.last_insert_id());
}

/// The shapes of trials that are inserted one after the other: most are as the one before.
class Shapes {
 public:
  explicit Shapes(Database& db) : store_{db} {}
  ShapeId of(const NewTrial& trial) {
    const bool command = !trial.command_json.empty();
    StoredDemand demand{.command = command,
                        .data = trial.data,
                        .gpus = trial.gpus,
                        .result_version = command ? 0 : trial.result_version,
                        .weights = trial.weights,
                        .where = trial.where,
                        .split = trial.split,
                        .pack = !trial.pack.empty(),
                        .sources = !trial.sources.empty()};
    if (id_ == 0 || demand != last_) {
      id_ = store_.shape_of(demand);
      last_ = std::move(demand);
    }
    return id_;
  }

 private:
  QueueStore store_;
  StoredDemand last_;
  ShapeId id_ = 0;
};

/// What rows of a sweep share, as its trials are inserted.
class Levels {
 public:
  explicit Levels(const std::vector<NewRow>& rows) : rows_{rows} {}
  void add(int row, bool completed) {
    const NewRow& of = rows_[static_cast<std::size_t>(row)];
    for (const auto& [factor, level] : of.levels) add(factor, level, completed);
    add({}, of.id, completed);
    ++trials_;
  }
  std::vector<BreakerStore::NewLevel> all() {
    std::vector<BreakerStore::NewLevel> levels;
    for (auto& [key, level] : levels_)
      if (level.trials < trials_) levels.push_back(std::move(level));  // what all share says nothing of any
    return levels;
  }

 private:
  void add(const std::string& factor, const std::string& level, bool completed) {
    key_.assign(factor).append(1, '\0').append(level);
    auto& counted = levels_[key_];
    if (counted.trials++ == 0) counted.factor = factor, counted.level = level;
    counted.completed = counted.completed || completed;
  }
  const std::vector<NewRow>& rows_;
  std::unordered_map<std::string, BreakerStore::NewLevel> levels_;
  std::uint32_t trials_ = 0;
  std::string key_;
};

/// Links new trials to those whose weights they take: each after those.
void link_chains(Database& db, const std::vector<NewTrial>& trials,
                 const std::map<std::size_t, TrialId>& mine) {
  std::map<std::pair<std::string, int>, std::size_t> left;  // by identity
  for (const auto& [index, id] : mine)
    if (!trials[index].sources.empty())
      left[{trials[index].config_hash, trials[index].result_version}] = index;
  const std::function<void(std::size_t)> link = [&](std::size_t index) {  // as deep as chains are long
    const NewTrial& trial = trials[index];
    if (left.erase({trial.config_hash, trial.result_version}) == 0) return;
    for (const NewSource& source : trial.sources)
      if (const auto before = left.find({source.config_hash, source.result_version}); before != left.end())
        link(before->second);
    ChainStore{db}.link(mine.at(index), trial.sources);
  };
  while (!left.empty()) link(left.begin()->second);
}

std::optional<std::int64_t> milliseconds(const std::optional<Milliseconds>& time) {
  return time ? std::optional{std::int64_t{time->count()}} : std::nullopt;
}

/// A trial of the same identity that was the sweep's in the same place before it was extended.
TrialId former_trial(Database& db, SweepId sweep, const std::string& row, const NewTrial& trial) {
  return db
      .prepared(R"sql(
      SELECT f.trial_id FROM sweep_former f JOIN trial t ON t.id = f.trial_id
      WHERE f.sweep_id = :sweep AND f.row = :row AND f.seed = :seed AND t.config_hash = :hash
        AND t.result_version = :version ORDER BY f.revision DESC LIMIT 1)sql")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .bind(":seed", trial.seed)
      .bind(":hash", trial.config_hash)
      .bind(":version", trial.result_version)
      .one([](const Statement& line) { return static_cast<TrialId>(line.integer(0)); })
      .value_or(0);
}

}  // namespace

Submitted SweepStore::insert(const NewSweep& sweep, const std::vector<NewTrial>& trials, Time now) {
  if (find(sweep.name))
    throw Error{Code::kAlreadyExists,
                "a sweep named '" + sweep.name + "' is in the store already; give this one another name"};
  Transaction transaction{db_, Transaction::kSavepoint};
  db_.prepared(
         R"sql(INSERT INTO sweep (id, name, file, text, canonical, canonical_hash, baseline, paper_heading, state, state_ms, priority, owner, weight, max_running, preempts, breaker,
                                        seeds_rule, probes, gpu_ms_limit, until_ms, created_ms)
                     VALUES ((SELECT last_sweep + 1 FROM store WHERE last_sweep >= COALESCE((SELECT MAX(id) FROM sweep), 0)),
                             :name, :file, :text, :canonical, :canonical_hash, :baseline, :paper_heading, 'active', :now, :priority, :owner, :weight, :max_running, :preempts, :breaker,
                             :seeds_rule, :probes, :gpu_ms, :until, :now))sql")
      .bind(":name", sweep.name)
      .bind(":file", sweep.file)
      .bind(":text", sweep.text)
      .bind(":canonical", sweep.canonical)
      .bind(":canonical_hash", sweep.canonical_hash)
      .bind(":baseline", sweep.baseline)
      .bind(":paper_heading", sweep.paper_heading)
      .bind(":priority", sweep.priority)
      .bind(":owner", sweep.owner)
      .bind(":weight", sweep.weight)
      .bind(":max_running", sweep.max_running)
      .bind(":preempts", sweep.preempts)
      .bind(":breaker", sweep.breaker)
      .bind(":seeds_rule", sweep.seeds_rule)
      .bind(":probes", sweep.probes)
      .bind(":gpu_ms", milliseconds(sweep.budget.gpu_time))
      .bind(":until", sweep.budget.until)
      .bind(":now", now)
      .run();
  const auto id = static_cast<SweepId>(db_.last_insert_id());
  const Submitted result = fill(id, sweep, trials, nullptr, now);
  transaction.commit();
  return result;
}

/// The lines of a sweep that has none: rows, columns, seeds, and claims on these trials. `kept`: claims that
/// it had before, by row and seed, which stay; of these that are used are taken out.
Submitted SweepStore::fill(SweepId id, const NewSweep& sweep, const std::vector<NewTrial>& trials,
                           Claims* kept, Time now) {
  Submitted result{.sweep = id};
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) insert_row(db_, id, static_cast<int>(i), sweep.rows[i]);
  for (std::size_t i = 0; i < sweep.columns.size(); ++i)
    insert_column(db_, id, static_cast<int>(i), sweep.columns[i]);
  for (std::size_t i = 0; i < sweep.seeds.size(); ++i)
    db_.prepared("INSERT INTO sweep_seed (sweep_id, position, seed) VALUES (:sweep, :position, :seed)")
        .bind(":sweep", id)
        .bind(":position", static_cast<int>(i))
        .bind(":seed", sweep.seeds[i])
        .run();

  const TrialStore store{db_};
  Levels levels{sweep.rows};
  Shapes shapes{db_};
  std::set<TrialId> mine, shared;  // two rows of one sweep may share a trial too
  std::set<std::pair<int, int>> filled;
  const auto claim = [&](int row, int seed_index, std::int64_t seed, TrialId trial, bool withdrawn) {
    db_.prepared(
           "INSERT INTO sweep_trial (sweep_id, row, seed_index, seed, trial_id, withdrawn) VALUES (:sweep, "
           ":row, :seed_index, :seed, :trial, :withdrawn)")
        .bind(":sweep", id)
        .bind(":row", row)
        .bind(":seed_index", seed_index)
        .bind(":seed", seed)
        .bind(":trial", trial)
        .bind(":withdrawn", withdrawn)
        .run();
  };
  if (kept) {
    std::map<std::string, int> rows;
    for (const NewRow& row : sweep.rows) rows.emplace(row.id, static_cast<int>(rows.size()));
    std::map<std::int64_t, int> seeds;
    for (const std::int64_t seed : sweep.seeds) seeds.emplace(seed, static_cast<int>(seeds.size()));
    for (auto old = kept->begin(); old != kept->end();) {
      const auto row = rows.find(old->first.first);
      const auto seed = seeds.find(old->first.second);
      if (row == rows.end() || seed == seeds.end() || old->second.replaced) {
        ++old;
        continue;
      }
      claim(row->second, seed->second, seed->first, old->second.trial, old->second.withdrawn);
      filled.emplace(row->second, seed->second);
      if (old->second.completed) note_unfilled(db_, old->second.trial);
      if (sweep.breaker) levels.add(row->second, old->second.completed);
      old = kept->erase(old);
      ++result.kept_trials;
    }
  }
  std::map<std::size_t, TrialId> inserted;  // by their place in `trials`
  for (std::size_t index = 0; index < trials.size(); ++index) {
    const NewTrial& trial = trials[index];
    if (filled.contains({trial.row, trial.seed_index})) continue;
    const auto same =
        trial.reusable ? store.find_same(trial.config_hash, trial.result_version, trial.data) : std::nullopt;
    TrialId there = same   ? same->id
                    : kept ? former_trial(db_, id, sweep.rows[static_cast<std::size_t>(trial.row)].id, trial)
                           : 0;
    const bool completed = same ? same->state == TrialState::kCompleted
                                : there != 0 && store.get(there).state == TrialState::kCompleted;
    if (there == 0) {
      there = insert_trial(db_, trial, trial.data.empty() ? "" : store.fingerprint(trial.data).value_or(""),
                           shapes.of(trial));
      WeightsStore{db_}.insert(there, trial.weights);
      mine.insert(there);
      inserted.emplace(index, there);
    } else if (!mine.contains(there)) {
      shared.insert(there);
      queue_again(there, {.held = false});  // what may bring workers down stays held
    }
    if (sweep.breaker) levels.add(trial.row, completed);
    claim(trial.row, trial.seed_index, trial.seed, there, false);
  }
  link_chains(db_, trials, inserted);
  for (const TrialId trial : shared) note_unfilled(db_, trial);
  if (!shared.empty()) BreakerStore{db_}.want(id, now);
  if (sweep.breaker) {
    BreakerStore{db_}.add_levels(id, levels.all());
    begin_canary(id);
  }
  result.new_trials = static_cast<std::uint32_t>(mine.size());
  result.shared_trials = static_cast<std::uint32_t>(shared.size());
  return result;
}

void add_rows(Database& db, SweepId sweep, const std::vector<NewRow>& rows,
              const std::vector<NewTrial>& trials) {
  auto position = static_cast<int>(db.prepared("SELECT COUNT(*) FROM sweep_row WHERE sweep_id = :sweep")
                                       .bind(":sweep", sweep)
                                       .one([](const Statement& line) { return line.integer(0); })
                                       .value());
  for (const NewRow& row : rows) insert_row(db, sweep, position++, row);
  Shapes shapes{db};
  for (const NewTrial& trial : trials) {
    const TrialId id = insert_trial(db, trial, "", shapes.of(trial));
    db.prepared(
          "INSERT INTO sweep_trial (sweep_id, row, seed_index, seed, trial_id) VALUES (:sweep, :row, "
          ":seed_index, :seed, :trial)")
        .bind(":sweep", sweep)
        .bind(":row", trial.row)
        .bind(":seed_index", trial.seed_index)
        .bind(":seed", trial.seed)
        .bind(":trial", id)
        .run();
  }
}

}  // namespace abl::storage
