// SPDX-License-Identifier: Apache-2.0
#include "storage/sweep_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/nearest_name.h"
#include "base/sha256.h"
#include "storage/breaker_store.h"
#include "storage/chain_store.h"
#include "storage/metric_store.h"
#include "storage/queue_store.h"
#include "storage/trial_store.h"
#include "storage/unfilled.h"
#include "storage/weights_store.h"

namespace abl::storage {
namespace {

void insert_row(Database& db, SweepId sweep, int position, const NewRow& row) {
  db.prepared(
        R"sql(INSERT INTO sweep_row (sweep_id, position, id, label, set_json, config_hash, model_hash, work_hash,
                                           heading, baseline, not_trained, not_trained_why)
                    VALUES (:sweep, :position, :id, :label, :set, :config_hash, :model_hash, :work_hash,
                            :heading, :baseline, :not_trained, :why))sql")
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
                                       retry_on, log_limit_bytes, nan_fails, pack)
                    VALUES ((SELECT last_trial + 1 FROM store WHERE last_trial >= COALESCE((SELECT MAX(id) FROM trial), 0)),
                            :config_hash, :result_version, :result_version, :fingerprint, :reusable, :config, :seed, :data, :command, :gpus,
                            :max_retries, :time_limit, :stall_limit, 'queued', :shape, :where, :retry_on, :log_limit, :nan_fails, :pack))sql")
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

/// A failed or cancelled trial back to the queue, with all its retries; a held one too where `held` is
/// wanted.
bool queue_again(Database& db, TrialId trial, Retry which) {
  db.prepared(
        R"sql(UPDATE trial SET state = 'queued', failures = 0, retried = '', losses = 0, deaths = 0, reason = '', waiting = '', not_before_ms = 0,
                               finished_ms = NULL, held_for_source = 0
              WHERE id = :trial AND (:ended AND state IN ('failed', 'cancelled') OR :held AND state = 'held'))sql")
      .bind(":ended", which.ended)
      .bind(":held", which.held)
      .bind(":trial", trial)
      .run();
  return db.changes() > 0;
}

bool is_open(TrialState state) {
  return state == TrialState::kQueued || state == TrialState::kLeased || state == TrialState::kRunning ||
         state == TrialState::kHeld;
}

ClaimRecord read_claim(const Statement& row) {
  const auto number = [&](int column) { return static_cast<std::uint32_t>(row.integer(column)); };
  ClaimRecord claim{.trial = number(0),
                    .state = trial_state(row.text(1)),
                    .reason = row.text(2),
                    .config_hash = row.text(3),
                    .attempt = static_cast<int>(row.integer(4)),
                    .run = row.is_null(5) ? std::nullopt : std::optional{number(5)},
                    .result_version = static_cast<int>(row.integer(6)),
                    .due_version = static_cast<int>(row.integer(7)),
                    .row = static_cast<int>(row.integer(8)),
                    .seed_index = static_cast<int>(row.integer(9)),
                    .row_id = row.text(10),
                    .label = row.text(11),
                    .seed = row.integer(12),
                    .shared = row.integer(13) != 0,
                    .worker = row.text(16),
                    .step = number(17),
                    .total_steps = number(18),
                    .steps_per_second = row.real(19),
                    .failure = value_named<protocol::FailureClass>(row.text(25)),
                    .refused_lines = number(20),
                    .refused_example = row.text(21),
                    .repeated_points = number(22)};
  if (row.integer(14) != 0 && is_open(claim.state)) claim.state = TrialState::kCancelled;
  claim.unfilled = claim.state == TrialState::kCompleted && row.integer(15) > 0;
  return claim;
}

/// Sweeps with their texts, or without, of those that `where` chooses, newest first.
std::string select_sweeps(const std::string& texts, const std::string& where) {
  return "SELECT s.id, s.name, s.file, " + texts +
         R"sql(, s.canonical_hash, s.baseline, s.paper_heading, s.state, s.priority,
             COALESCE((SELECT MAX(position) + 1 FROM sweep_row WHERE sweep_id = s.id), 0),
             COALESCE((SELECT MAX(position) + 1 FROM sweep_seed WHERE sweep_id = s.id), 0),
             n.queued, n.leased, n.running, n.completed, n.failed, n.held, n.cancelled, n.unfilled,
             s.created_ms, MAX(s.created_ms, CASE s.state WHEN 'cancelled' THEN s.state_ms ELSE 0 END, n.finished_ms),
             s.owner, s.weight, s.max_running, s.preempts, s.breaker, s.canary, s.held,
             (SELECT json_group_array(held) FROM (SELECT held FROM sweep_level INDEXED BY sweep_level_held
                                                  WHERE sweep_id = s.id AND held <> '' LIMIT 20)),
             (SELECT COUNT(*) FROM sweep_level INDEXED BY sweep_level_held WHERE sweep_id = s.id AND held <> ''),
             s.revision, s.seeds_rule, s.gpu_ms_limit, s.until_ms, s.spent, n.gpu_ms
      FROM sweep s JOIN sweep_count n ON n.sweep_id = s.id
      WHERE )sql" +
         where + " ORDER BY s.id DESC";
}

/// After the first of the `levels` that are held: how many more there are.
void say_more(std::vector<std::string>& holds, std::int64_t levels) {
  constexpr std::int64_t kSaid = 20;
  if (levels > kSaid) holds.push_back(fmt::format("and {} more fail", levels - kSaid));
}

SweepRecord read_sweep(const Statement& row) {
  const auto count = [&](int column) { return static_cast<std::uint32_t>(row.integer(column)); };
  SweepRecord sweep{.id = count(0),
                    .name = row.text(1),
                    .file = row.text(2),
                    .text = row.text(3),
                    .canonical = row.text(4),
                    .canonical_hash = row.text(5),
                    .baseline = row.text(6),
                    .paper_heading = row.text(7),
                    .state = sweep_state(row.text(8)),
                    .priority = static_cast<int>(row.integer(9)),
                    .owner = row.text(22),
                    .weight = row.real(23),
                    .rows = count(10),
                    .seeds = count(11),
                    .trials = {.queued = count(12),
                               .leased = count(13),
                               .running = count(14),
                               .completed = count(15),
                               .failed = count(16),
                               .held = count(17),
                               .cancelled = count(18),
                               .unfilled = count(19)},
                    .created = row.time(20)};
  if (!row.is_null(24)) sweep.max_running = count(24);
  sweep.preempts = row.integer(25) != 0;
  sweep.breaker = row.integer(26) != 0;
  sweep.canary = row.integer(27) != 0;
  if (std::string held = row.text(28); !held.empty()) sweep.holds.push_back(std::move(held));
  if (const std::string levels = row.text(29); levels != "[]")
    for (auto& held : nlohmann::json::parse(levels)) sweep.holds.push_back(held.get<std::string>());
  say_more(sweep.holds, row.integer(30));
  sweep.revision = count(31);
  sweep.seeds_rule = row.text(32);
  if (!row.is_null(33)) sweep.budget.gpu_time = Milliseconds{row.integer(33)};
  if (!row.is_null(34)) sweep.budget.until = row.time(34);
  sweep.spent = row.text(35);
  sweep.gpu_time = Milliseconds{row.integer(36)};
  if (sweep.state == SweepState::kCancelled) sweep.holds.clear();  // nothing of it is held any more
  if (sweep.trials.open() == 0) sweep.finished = row.time(21);
  return sweep;
}

}  // namespace

namespace {

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

/// A few run first where many wait and none has completed.
void begin_canary(Database& db, SweepId sweep) {
  db.prepared(R"sql(UPDATE sweep SET canary = 1 WHERE id = :sweep AND breaker
                    AND (SELECT queued >= :many AND completed = 0 FROM sweep_count WHERE sweep_id = :sweep))sql")
      .bind(":many", std::int64_t{SweepStore::kCanaryFrom})
      .bind(":sweep", sweep)
      .run();
}

}  // namespace

namespace {

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
                                        seeds_rule, gpu_ms_limit, until_ms, created_ms)
                     VALUES ((SELECT last_sweep + 1 FROM store WHERE last_sweep >= COALESCE((SELECT MAX(id) FROM sweep), 0)),
                             :name, :file, :text, :canonical, :canonical_hash, :baseline, :paper_heading, 'active', :now, :priority, :owner, :weight, :max_running, :preempts, :breaker,
                             :seeds_rule, :gpu_ms, :until, :now))sql")
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
      queue_again(db_, there, {.held = false});  // what may bring workers down stays held
    }
    if (sweep.breaker) levels.add(trial.row, completed);
    claim(trial.row, trial.seed_index, trial.seed, there, false);
  }
  link_chains(db_, trials, inserted);
  for (const TrialId trial : shared) note_unfilled(db_, trial);
  if (!shared.empty()) BreakerStore{db_}.want(id, now);
  if (sweep.breaker) {
    BreakerStore{db_}.add_levels(id, levels.all());
    begin_canary(db_, id);
  }
  result.new_trials = static_cast<std::uint32_t>(mine.size());
  result.shared_trials = static_cast<std::uint32_t>(shared.size());
  return result;
}

std::vector<SweepRecord> SweepStore::list(std::uint32_t count, SweepId before) const {
  static const std::string sql = select_sweeps(
      "'', ''", "s.id IN (SELECT id FROM sweep WHERE id < :before ORDER BY id DESC LIMIT :count)");
  return db_.prepared(sql.c_str()).bind(":before", before).bind(":count", count).all(read_sweep);
}

std::uint32_t SweepStore::count() const {
  return static_cast<std::uint32_t>(db_.prepared("SELECT COUNT(*) FROM sweep")
                                        .one([](const Statement& row) { return row.integer(0); })
                                        .value());
}

SweepId SweepStore::newest_but(std::uint32_t others) const {
  return db_.prepared("SELECT id FROM sweep ORDER BY id DESC LIMIT 1 OFFSET :others")
      .bind(":others", others)
      .one([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); })
      .value_or(0);
}

std::optional<SweepRecord> SweepStore::find(const std::string& name) const {
  static const std::string sql = select_sweeps("s.text, s.canonical", "s.name = :name");
  return db_.prepared(sql.c_str()).bind(":name", name).one(read_sweep);
}

SweepRecord SweepStore::get_brief(const std::string& name) const {
  static const std::string sql = select_sweeps("'', ''", "s.name = :name");
  if (auto sweep = db_.prepared(sql.c_str()).bind(":name", name).one(read_sweep)) return *std::move(sweep);
  return get(name);  // says what there is
}

std::string SweepStore::text(SweepId sweep) const {
  return db_.prepared("SELECT text FROM sweep WHERE id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("");
}

SweepRecord SweepStore::get(const std::string& name) const {
  if (auto sweep = find(name)) return *sweep;
  const auto names = db_.prepared("SELECT name FROM sweep ORDER BY id DESC").all([](const Statement& row) {
    return row.text(0);
  });
  std::string hint = did_you_mean(name, names);
  if (hint.empty())
    hint = names.empty() ? "; none was submitted yet" : "; the newest is '" + names.front() + "'";
  throw Error{Code::kNotFound, "unknown sweep '" + name + "'" + hint};
}

void SweepStore::rename(SweepId sweep, const std::string& name, const std::string& canonical) {
  if (find(name)) throw Error{Code::kAlreadyExists, "a sweep named '" + name + "' is in the store already"};
  db_.prepared(
         "UPDATE sweep SET name = :name, canonical = :canonical, canonical_hash = :hash, state = state WHERE "
         "id = :sweep")
      .bind(":name", name)
      .bind(":canonical", canonical)
      .bind(":hash", sha256_hex(canonical))
      .bind(":sweep", sweep)
      .run();
}

std::optional<std::string> SweepStore::name_of(SweepId sweep) const {
  return db_.prepared("SELECT name FROM sweep WHERE id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); });
}

void SweepStore::set_state(SweepId sweep, SweepState state, Time now) {
  db_.prepared("UPDATE sweep SET state = :state, state_ms = :now WHERE id = :sweep")
      .bind(":state", to_text(state))
      .bind(":now", now)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_priority(SweepId sweep, int priority) {
  db_.prepared("UPDATE sweep SET priority = :priority WHERE id = :sweep")
      .bind(":priority", priority)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_weight(SweepId sweep, double weight) {
  db_.prepared("UPDATE sweep SET weight = :weight WHERE id = :sweep")
      .bind(":weight", weight)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_preempts(SweepId sweep, bool preempts) {
  db_.prepared("UPDATE sweep SET preempts = :preempts WHERE id = :sweep")
      .bind(":preempts", preempts)
      .bind(":sweep", sweep)
      .run();
}

std::vector<std::string> SweepStore::holds(SweepId sweep) const {
  auto holds = db_.prepared(R"sql(
      SELECT held FROM sweep WHERE id = :sweep AND held <> '' AND state <> 'cancelled' UNION ALL
      SELECT held FROM (SELECT held FROM sweep_level INDEXED BY sweep_level_held
                        WHERE sweep_id = :sweep AND held <> '' LIMIT 20)
      WHERE (SELECT state FROM sweep WHERE id = :sweep) <> 'cancelled')sql")
                   .bind(":sweep", sweep)
                   .all([](const Statement& row) { return row.text(0); });
  if (holds.size() >= 20)
    say_more(holds, db_.prepared("SELECT COUNT(*) FROM sweep_level INDEXED BY sweep_level_held WHERE "
                                 "sweep_id = :sweep AND held <> ''")
                        .bind(":sweep", sweep)
                        .one([](const Statement& row) { return row.integer(0); })
                        .value_or(0));
  return holds;
}

void SweepStore::set_breaker(SweepId sweep, bool breaker) {
  db_.prepared("UPDATE sweep SET breaker = :breaker, canary = canary AND :breaker WHERE id = :sweep")
      .bind(":breaker", breaker)
      .bind(":sweep", sweep)
      .run();
}

void SweepStore::set_max_running(SweepId sweep, std::optional<std::uint32_t> trials) {
  db_.prepared("UPDATE sweep SET max_running = :trials WHERE id = :sweep")
      .bind(":trials", trials)
      .bind(":sweep", sweep)
      .run();
}

namespace {

/// Claims as `read_claim` reads them, then what `read_seen` adds, of those that `where` chooses.
std::string select_claims(const std::string& where) {
  return R"sql(
      SELECT t.id, t.state, CASE t.state WHEN 'queued' THEN (SELECT reason FROM trial_waiting WHERE trial = t.id) ELSE t.reason END,
             t.config_hash, t.attempt, t.run_id, t.result_version, t.due_version, st.row, st.seed_index, r.id, r.label, st.seed,
             EXISTS (SELECT 1 FROM sweep_trial o WHERE o.trial_id = st.trial_id AND o.sweep_id <> st.sweep_id AND o.withdrawn = 0),
             st.withdrawn, st.unfilled, run.worker, run.step, run.total_steps, run.steps_per_second, run.refused_lines,
             run.refused_example, run.repeated_points, t.shape_id,
             CASE WHEN t.awaits > 0 THEN (SELECT 'waits for ' || a.what FROM trial_awaits a JOIN trial_source ts
                                            ON ts.trial_id = a.trial AND ts.source_id = a.source AND ts.name <> ''
                                          WHERE a.trial = t.id ORDER BY a.source LIMIT 1) ELSE t.waiting END, run.failure
      FROM sweep_trial st
      JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      JOIN trial t ON t.id = st.trial_id
      LEFT JOIN run ON run.id = t.run_id
      WHERE st.sweep_id = :sweep AND )sql" +
         where + " ORDER BY st.row, st.seed_index";
}

SeenClaim read_seen(const Statement& row) {
  SeenClaim seen{.claim = read_claim(row)};
  seen.waits = seen.claim.state == TrialState::kQueued;
  seen.shape = static_cast<std::uint32_t>(row.integer(23));
  if (seen.waits) seen.own_reason = row.text(24);
  return seen;
}

}  // namespace

std::vector<SeenClaim> SweepStore::seen_claims(SweepId sweep, const Rows& rows) const {
  const Transaction snapshot{db_, Transaction::kRead};
  const auto read = [&](std::uint32_t first, std::uint32_t count, std::int64_t most) {
    static const std::string sql =
        select_claims("st.row >= :first AND st.row < :first + :count") + " LIMIT :most";
    return db_.prepared(sql.c_str())
        .bind(":sweep", sweep)
        .bind(":first", first)
        .bind(":count", count)
        .bind(":most", most)
        .all(read_seen);
  };
  auto claims = read(rows.first, rows.count, std::int64_t{rows.most_trials} + 1);
  if (claims.size() > rows.most_trials) {  // the last row may not be whole
    const int last = claims.back().claim.row, first = claims.front().claim.row;
    if (last == first)
      claims = read(static_cast<std::uint32_t>(first), 1, -1);
    else
      std::erase_if(claims, [last](const SeenClaim& seen) { return seen.claim.row == last; });
  }
  const auto share =
      std::max<std::size_t>(kLeastValues, kMostValues / std::max<std::size_t>(1, claims.size()));
  read_last_values(sweep, rows.values.value_or(static_cast<std::uint32_t>(share)), claims);
  return claims;
}

std::vector<SeenClaim> SweepStore::seen_claims(SweepId sweep, TrialId trial, std::uint32_t values) const {
  const Transaction snapshot{db_, Transaction::kRead};
  static const std::string sql = select_claims("st.trial_id = :trial");
  auto claims = db_.prepared(sql.c_str()).bind(":sweep", sweep).bind(":trial", trial).all(read_seen);
  read_last_values(sweep, values, claims);
  return claims;
}

void SweepStore::read_last_values(SweepId sweep, std::uint32_t values, std::vector<SeenClaim>& claims) const {
  if (values == 0) return;
  for (auto& [claim, waits, shape, own] : claims)
    if (claim.run)
      claim.last = MetricStore{db_}.last_values(*claim.run, sweep, values, claim.metrics_left_out);
}

std::vector<ClaimRecord> SweepStore::claims(SweepId sweep, const Rows& rows) const {
  std::vector<ClaimRecord> claims;
  for (SeenClaim& seen : seen_claims(sweep, rows)) claims.push_back(std::move(seen.claim));
  return claims;
}

std::optional<int> SweepStore::row(SweepId sweep, const std::string& id) const {
  return db_.prepared("SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :id")
      .bind(":sweep", sweep)
      .bind(":id", id)
      .one([](const Statement& found) { return static_cast<int>(found.integer(0)); });
}

std::vector<RunId> SweepStore::runs(std::optional<SweepId> sweep, RunId before, std::uint32_t count) const {
  const auto id = [](const Statement& row) { return static_cast<RunId>(row.integer(0)); };
  const std::int64_t end = before == 0 ? std::numeric_limits<std::int64_t>::max() : before;
  if (!sweep)
    return db_.prepared("SELECT id FROM run WHERE id < :end ORDER BY id DESC LIMIT :count")
        .bind(":end", end)
        .bind(":count", count)
        .all(id);
  constexpr int kFew = 2000;
  const auto trials =
      db_.prepared("SELECT COUNT(*) FROM (SELECT 1 FROM sweep_trial WHERE sweep_id = :sweep LIMIT :few)")
          .bind(":sweep", *sweep)
          .bind(":few", kFew)
          .one(id)
          .value_or(0);
  // of few trials all runs are found by them; of many trials runs stand close together
  return db_
      .prepared(trials < kFew ? R"sql(
      SELECT run.id FROM (SELECT DISTINCT trial_id FROM sweep_trial WHERE sweep_id = :sweep) t
      CROSS JOIN run ON run.trial_id = t.trial_id WHERE run.id < :end ORDER BY run.id DESC LIMIT :count)sql"
                              : R"sql(
      SELECT id FROM run WHERE id < :end
        AND EXISTS (SELECT 1 FROM sweep_trial st WHERE st.trial_id = run.trial_id AND st.sweep_id = :sweep)
      ORDER BY id DESC LIMIT :count)sql")
      .bind(":sweep", *sweep)
      .bind(":end", end)
      .bind(":count", count)
      .all(id);
}

bool SweepStore::is_wanted(TrialId trial) const {
  return db_
      .prepared(R"sql(SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                      WHERE st.trial_id = :trial AND st.withdrawn = 0 AND s.state = 'active')sql")
      .bind(":trial", trial)
      .one([](const Statement&) { return true; })
      .has_value();
}

std::vector<RunId> SweepStore::own_runs(SweepId sweep) const {
  return db_
      .prepared(R"sql(
      SELECT DISTINCT t.run_id FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state IN ('leased', 'running')
      WHERE st.sweep_id = :sweep AND st.withdrawn = 0
        AND NOT EXISTS (SELECT 1 FROM sweep_trial o JOIN sweep s ON s.id = o.sweep_id
                        WHERE o.trial_id = t.id AND o.sweep_id <> :sweep AND o.withdrawn = 0 AND s.state = 'active')
      ORDER BY t.run_id)sql")
      .bind(":sweep", sweep)
      .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
}

std::vector<SweepId> SweepStore::claimants(TrialId trial) const {
  return db_
      .prepared(
          "SELECT DISTINCT sweep_id FROM sweep_trial WHERE trial_id = :trial AND withdrawn = 0 ORDER BY "
          "sweep_id")
      .bind(":trial", trial)
      .all([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
}

std::vector<std::string> SweepStore::names_of(TrialId trial) const {
  return db_
      .prepared(R"sql(SELECT DISTINCT s.name FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                      WHERE st.trial_id = :trial ORDER BY s.id)sql")
      .bind(":trial", trial)
      .all([](const Statement& row) { return row.text(0); });
}

std::vector<SweepId> SweepStore::sweeps_with(TrialId trial) const {
  return db_.prepared("SELECT DISTINCT sweep_id FROM sweep_trial WHERE trial_id = :trial")
      .bind(":trial", trial)
      .all([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
}

std::vector<int> SweepStore::rows_with(SweepId sweep, TrialId trial) const {
  return db_.prepared("SELECT DISTINCT row FROM sweep_trial WHERE trial_id = :trial AND sweep_id = :sweep")
      .bind(":trial", trial)
      .bind(":sweep", sweep)
      .all([](const Statement& row) { return static_cast<int>(row.integer(0)); });
}

std::optional<TrialId> SweepStore::trial_of(RunId run) const {
  return db_.prepared("SELECT trial_id FROM run WHERE id = :run")
      .bind(":run", run)
      .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
}

std::vector<SweepStore::Position> SweepStore::positions(TrialId trial) const {
  return db_
      .prepared(R"sql(SELECT s.name, r.id, r.label, st.seed FROM sweep_trial st
                      JOIN sweep s ON s.id = st.sweep_id
                      JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
                      WHERE st.trial_id = :trial ORDER BY s.id, st.row, st.seed_index)sql")
      .bind(":trial", trial)
      .all([](const Statement& row) {
        return Position{
            .sweep = row.text(0), .row = row.text(1), .label = row.text(2), .seed = row.integer(3)};
      });
}

std::vector<RunId> SweepStore::withdraw(SweepId sweep, Time now) {
  Transaction transaction{db_, Transaction::kSavepoint};
  set_state(sweep, SweepState::kCancelled, now);
  db_.prepared("UPDATE sweep_trial SET withdrawn = 1 WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  db_.prepared(R"sql(UPDATE trial SET state = 'cancelled', finished_ms = :now
                     WHERE state IN ('queued', 'held') AND id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep)
                       AND NOT EXISTS (SELECT 1 FROM sweep_trial c WHERE c.trial_id = trial.id AND c.withdrawn = 0))sql")
      .bind(":sweep", sweep)
      .bind(":now", now)
      .run();
  auto runs = db_.prepared(R"sql(SELECT run_id FROM trial
                                 WHERE state IN ('leased', 'running') AND id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep)
                                   AND NOT EXISTS (SELECT 1 FROM sweep_trial c WHERE c.trial_id = trial.id AND c.withdrawn = 0))sql")
                  .bind(":sweep", sweep)
                  .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  give_places_back(sweep);
  BreakerStore{db_}.give_up(sweep, now);
  transaction.commit();
  return runs;
}

/// Completed trials that were to run again have their places back where the new ones did not get to their
/// ends.
void SweepStore::give_places_back(SweepId sweep) {
  const auto places =
      db_.prepared(R"sql(
      SELECT o.id, st.trial_id FROM trial o CROSS JOIN sweep_trial st ON st.trial_id = o.replaced_by AND st.sweep_id = :sweep
      CROSS JOIN trial t ON t.id = st.trial_id AND t.state NOT IN ('completed', 'failed')
      WHERE o.replaced_by IS NOT NULL AND o.state = 'completed')sql")
          .bind(":sweep", sweep)
          .all([](const Statement& row) {
            return std::pair{static_cast<TrialId>(row.integer(0)), static_cast<TrialId>(row.integer(1))};
          });
  for (const auto& [completed, unfinished] : places) {
    db_.prepared("UPDATE sweep_trial SET trial_id = :completed WHERE sweep_id = :sweep AND trial_id = :trial")
        .bind(":completed", completed)
        .bind(":trial", unfinished)
        .bind(":sweep", sweep)
        .run();
    note_unfilled(db_, completed);
    ChainStore{db_}.take_instead(unfinished, completed);
  }
}

std::uint32_t SweepStore::retry(SweepId sweep, const std::string& row_id, Time now, const Renew& renewed,
                                Retry which) {
  Transaction transaction{db_, Transaction::kSavepoint};
  const auto rows = db_.prepared("SELECT id FROM sweep_row WHERE sweep_id = :sweep ORDER BY position")
                        .bind(":sweep", sweep)
                        .all([](const Statement& row) { return row.text(0); });
  if (!row_id.empty() && std::ranges::find(rows, row_id) == rows.end()) {
    const auto name = db_.prepared("SELECT name FROM sweep WHERE id = :sweep")
                          .bind(":sweep", sweep)
                          .one([](const Statement& row) { return row.text(0); });
    throw Error{Code::kNotFound,
                "sweep " + name.value_or("") + " has no row '" + row_id + "'" + did_you_mean(row_id, rows)};
  }
  // a cancelled sweep claims its trials again: those that ended all of them, others those that run again
  db_.prepared(R"sql(UPDATE sweep_trial SET withdrawn = 0 WHERE sweep_id = :sweep AND :ended
                     AND (:row = '' OR row = (SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :row)))sql")
      .bind(":sweep", sweep)
      .bind(":ended", which.ended)
      .bind(":row", row_id)
      .run();
  db_.prepared(
         "UPDATE sweep SET state = 'active', state_ms = :now WHERE id = :sweep AND :ended AND state = "
         "'cancelled'")
      .bind(":ended", which.ended)
      .bind(":now", now)
      .bind(":sweep", sweep)
      .run();
  const auto trials = db_.prepared(R"sql(
      SELECT DISTINCT trial_id FROM sweep_trial WHERE sweep_id = :sweep
      AND (:row = '' OR row = (SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :row)))sql")
                          .bind(":sweep", sweep)
                          .bind(":row", row_id)
                          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  std::uint32_t queued = 0;
  if (!row_id.empty() && (which.ended || which.held))
    for (const TrialId trial : trials) queued += retry_sources(sweep, trial);
  for (const TrialId trial : trials) {
    const bool again = which.ended || which.held ? queue_again(db_, trial, which) : false;
    if (again)
      db_.prepared("UPDATE sweep_trial SET withdrawn = 0 WHERE sweep_id = :sweep AND trial_id = :trial")
          .bind(":sweep", sweep)
          .bind(":trial", trial)
          .run();
    queued += again || run_again(sweep, TrialStore{db_}.get(trial), renewed, which);
  }
  if (which.ended || which.held) {
    BreakerStore{db_}.want(sweep, now);
    row_id.empty() ? BreakerStore{db_}.reset(sweep) : BreakerStore{db_}.reset(sweep, row_id);
    begin_canary(db_, sweep);
  }
  if (queued > 0)
    db_.prepared(
           "UPDATE sweep SET state = 'active', state_ms = :now WHERE id = :sweep AND state = 'cancelled'")
        .bind(":now", now)
        .bind(":sweep", sweep)
        .run();
  transaction.commit();
  return queued;
}

/// A row that runs again needs those whose weights it takes: what of them has failed, was cancelled or is
/// held.
std::uint32_t SweepStore::retry_sources(SweepId sweep, TrialId trial) {
  std::uint32_t queued = 0;
  for (const TrialId source : ChainStore{db_}.awaited(trial)) {
    const bool again = queue_again(db_, source, {});
    db_.prepared("UPDATE sweep_trial SET withdrawn = 0 WHERE sweep_id = :sweep AND trial_id = :trial")
        .bind(":sweep", sweep)
        .bind(":trial", source)
        .run();
    queued += again ? 1 : 0;
  }
  return queued;
}

void SweepStore::claim_instead(std::optional<SweepId> sweep, TrialId trial, TrialId other) {
  db_.prepared(
         R"sql(UPDATE sweep_trial SET trial_id = :other, withdrawn = CASE WHEN :sweep IS NULL THEN withdrawn ELSE 0 END
               WHERE trial_id = :trial AND (:sweep IS NULL OR sweep_id = :sweep))sql")
      .bind(":other", other)
      .bind(":trial", trial)
      .bind(":sweep", sweep)
      .run();
  queue_again(db_, other, {.held = false});
  note_unfilled(db_, other);
  ChainStore{db_}.take_instead(trial, other);
}

/// A new trial of the same settings, as they are today.
TrialId SweepStore::copy_of(const TrialRecord& trial, const RenewedTrial& today,
                            std::optional<std::int64_t> seed) {
  db_.prepared(R"sql(
      INSERT INTO trial (id, config_hash, result_version, due_version, data_fingerprint, reusable, config, seed, data, command_json,
                         gpus, max_retries, time_limit_s, stall_limit_s, where_json, retry_on, log_limit_bytes, nan_fails, pack, state)
      SELECT (SELECT last_trial + 1 FROM store WHERE last_trial >= COALESCE((SELECT MAX(id) FROM trial), 0)),
             :config_hash, :version, :version, data_fingerprint, :reusable, :config, COALESCE(:seed, seed), data, command_json, gpus, max_retries,
             time_limit_s, stall_limit_s, where_json, retry_on, log_limit_bytes, nan_fails, pack, 'queued' FROM trial WHERE id = :trial)sql")
      .bind(":config_hash", today.config_hash)
      .bind(":version", today.result_version)
      .bind(":config", today.config)
      .bind(":reusable", trial.reusable)
      .bind(":seed", seed)
      .bind(":trial", trial.id)
      .run();
  const auto copy = static_cast<TrialId>(db_.last_insert_id());
  db_.prepared(
         "INSERT INTO trial_weights (trial_id, name, sha256) SELECT :copy, name, sha256 FROM trial_weights "
         "WHERE trial_id = :trial")
      .bind(":copy", copy)
      .bind(":trial", trial.id)
      .run();
  ChainStore{db_}.copy(trial.id, copy);
  QueueStore{db_}.set_shape(copy);
  return copy;
}

void SweepStore::add_seed(SweepId sweep, const std::string& row, int seed_index, Time now,
                          const WithSeed& with_seed) {
  struct First {
    int position = 0;
    TrialId trial = 0;
    std::int64_t seed = 0;
  };
  const auto first = db_.prepared(R"sql(
      SELECT r.position, st.trial_id, s.seed FROM sweep_row r
      JOIN sweep_trial st ON st.sweep_id = r.sweep_id AND st.row = r.position
      JOIN sweep_seed s ON s.sweep_id = r.sweep_id AND s.position = :seed_index
      WHERE r.sweep_id = :sweep AND r.id = :row ORDER BY st.seed_index LIMIT 1)sql")
                         .bind(":sweep", sweep)
                         .bind(":row", row)
                         .bind(":seed_index", seed_index)
                         .one([](const Statement& line) {
                           return First{static_cast<int>(line.integer(0)),
                                        static_cast<TrialId>(line.integer(1)), line.integer(2)};
                         });
  if (!first)
    throw Error{Code::kNotFound,
                fmt::format("row {} has no seed {}, or no trial to make it of", row, seed_index)};
  const TrialRecord model = TrialStore{db_}.get(first->trial);
  const RenewedTrial next = with_seed(model, first->seed);
  const auto same = model.reusable
                        ? TrialStore{db_}.find_same(next.config_hash, next.result_version, model.data)
                        : std::nullopt;
  const TrialId trial = same ? same->id : copy_of(model, next, first->seed);
  if (same) queue_again(db_, trial, {.held = false});
  db_.prepared(
         "INSERT INTO sweep_trial (sweep_id, row, seed_index, seed, trial_id) VALUES (:sweep, :row, "
         ":seed_index, :seed, :trial)")
      .bind(":sweep", sweep)
      .bind(":row", first->position)
      .bind(":seed_index", seed_index)
      .bind(":seed", first->seed)
      .bind(":trial", trial)
      .run();
  if (same) {
    note_unfilled(db_, trial);
    BreakerStore{db_}.want(sweep, now);
  }
}

bool SweepStore::run_again(SweepId sweep, const TrialRecord& first, const Renew& renewed, Retry which) {
  const auto is_to = [&](const TrialRecord& trial) {
    if (trial.state != TrialState::kCompleted) return false;
    if (which.before_mend && trial.before_mend()) return true;
    return which.unfilled &&
           db_.prepared(
                  "SELECT 1 FROM sweep_trial WHERE sweep_id = :sweep AND trial_id = :trial AND unfilled > 0")
               .bind(":sweep", sweep)
               .bind(":trial", trial.id)
               .one([](const Statement&) { return true; })
               .has_value();
  };
  TrialRecord newest = first;
  if (which.completed) {  // of those that stand in for each other the newest: it alone may be shared
    if (first.state != TrialState::kCompleted) return false;
    while (newest.replaced_by && newest.state == TrialState::kCompleted)
      newest = TrialStore{db_}.get(*newest.replaced_by);
    if (newest.state != TrialState::kCompleted) {  // another sweep has it run again at this moment
      claim_instead(sweep, first.id, newest.id);
      return true;
    }
  }
  bool again = false;
  for (TrialRecord trial = newest; is_to(trial) || (which.completed && !again); again = true) {
    TrialId next = trial.replaced_by.value_or(0);
    if (next == 0 && trial.before_mend() && ChainStore{db_}.is_chained(trial.id))
      throw Error{
          Code::kFailedPrecondition,
          fmt::format(
              "trial {} takes the weights of another row and was made before a correction of the trainer: "
              "submit the sweep under another name, which trains both",
              trial.id)};
    const RenewedTrial today = trial.before_mend() ? renewed(trial)
                                                   : RenewedTrial{trial.config, trial.identity.config_hash,
                                                                  trial.identity.result_version};
    if (next == 0 && trial.before_mend() && trial.reusable)
      if (const auto same = TrialStore{db_}.find_same(today.config_hash, today.result_version, trial.data))
        next = same->id;
    if (next == 0) {
      // of trials with one identity only the newest may be shared
      db_.prepared("UPDATE trial SET reusable = 0 WHERE id = :trial").bind(":trial", trial.id).run();
      next = copy_of(trial, today);
      db_.prepared("UPDATE trial SET replaced_by = :next WHERE id = :trial")
          .bind(":next", next)
          .bind(":trial", trial.id)
          .run();
    }
    claim_instead(sweep, which.completed ? first.id : trial.id, next);
    trial = TrialStore{db_}.get(next);
  }
  return again;
}

}  // namespace abl::storage
