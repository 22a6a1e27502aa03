// SPDX-License-Identifier: Apache-2.0
#include "storage/queue_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/chain_store.h"

namespace abl::storage {
namespace {

/// Reads trials whose claims stand in lines of their own, one after the other.
class OpenTrials {
 public:
  OpenTrials(const std::function<void(OpenTrial)>& take, const std::function<std::string(TrialId)>& home_of,
             const std::function<std::vector<std::string>(TrialId)>& failed_on)
      : take_{take}, home_of_{home_of}, failed_on_{failed_on} {}
  ~OpenTrials() = default;

  /// id, shape, under way, not before, attempted, sweep, row, seed index
  void read(const Statement& line) {
    const auto id = static_cast<TrialId>(line.integer(0));
    if (id != trial_.id) {
      hand_over();
      trial_ = {.id = id,
                .shape = static_cast<ShapeId>(line.integer(1)),
                .under_way = line.integer(2) != 0,
                .not_before = line.time(3),
                .pack = line.text(8),
                .awaits = line.integer(10) != 0};
      attempted_ = line.integer(4) != 0;
      chained_ = line.integer(11) != 0;
      has_failed_ = line.integer(9) != 0;
    }
    if (line.is_null(5)) return;
    trial_.claims.push_back({.sweep = static_cast<SweepId>(line.integer(5)),
                             .row = static_cast<std::uint32_t>(line.integer(6)),
                             .seed_index = static_cast<std::uint32_t>(line.integer(7)),
                             .turn = line.real(12)});
  }
  void hand_over() {
    if (trial_.id == 0) return;
    if ((attempted_ || chained_) && !trial_.under_way && !trial_.awaits) trial_.home = home_of_(trial_.id);
    if (has_failed_ && !trial_.under_way) trial_.failed_on = failed_on_(trial_.id);
    take_(std::exchange(trial_, {}));
  }

 private:
  const std::function<void(OpenTrial)>& take_;
  const std::function<std::string(TrialId)> home_of_;
  const std::function<std::vector<std::string>(TrialId)> failed_on_;
  OpenTrial trial_;
  bool attempted_ = false, chained_ = false, has_failed_ = false;
};

constexpr const char* kOneOpen = R"sql(
    SELECT t.id, t.shape_id, t.state <> 'queued', t.not_before_ms, t.attempt > 0 OR t.continues IS NOT NULL, st.sweep_id, st.row, st.seed_index, t.pack,
           t.failures > 0 OR t.retried <> '' OR (t.losses > 0 AND t.retry_on <> ''), t.awaits > 0,
           EXISTS (SELECT 1 FROM trial_source ts WHERE ts.trial_id = t.id), st.turn
    FROM trial t LEFT JOIN sweep_trial st ON st.trial_id = t.id AND st.withdrawn = 0
    WHERE t.id = :trial AND (t.state = 'queued' OR t.state = 'leased' OR t.state = 'running'))sql";
constexpr const char* kOpenBetween = R"sql(
    SELECT t.id, t.shape_id, t.state <> 'queued', t.not_before_ms, t.attempt > 0 OR t.continues IS NOT NULL, st.sweep_id, st.row, st.seed_index, t.pack,
           t.failures > 0 OR t.retried <> '' OR (t.losses > 0 AND t.retry_on <> ''), t.awaits > 0,
           EXISTS (SELECT 1 FROM trial_source ts WHERE ts.trial_id = t.id), st.turn
    FROM trial t LEFT JOIN sweep_trial st ON st.trial_id = t.id AND st.withdrawn = 0
    WHERE t.id BETWEEN :first AND :last AND (t.state = 'queued' OR t.state = 'leased' OR t.state = 'running') ORDER BY t.id)sql";

OpenSweep read_open_sweep(const Statement& row) {
  OpenSweep sweep{.id = static_cast<SweepId>(row.integer(0)),
                  .active = row.integer(1) != 0,
                  .priority = static_cast<int>(row.integer(2)),
                  .owner = row.text(3),
                  .weight = row.real(4),
                  .preempts = row.integer(6) != 0,
                  .canary = row.integer(7) != 0};
  if (!row.is_null(5)) sweep.max_running = static_cast<std::uint32_t>(row.integer(5));
  return sweep;
}

/// Whether these are so many and so close together that one statement over their range is cheaper than one
/// for each.
bool are_neighbours(std::span<const TrialId> trials) {
  constexpr std::size_t kMany = 64, kGap = 4;
  return trials.size() >= kMany && trials.back() - trials.front() < kGap * trials.size();
}

}  // namespace

std::string StoredDemand::text() const {
  nlohmann::json demand{
      {"command", command},
      {"data", data},
      {"gpus", gpus},
      {"result_version", result_version},
      {"weights", nlohmann::json(weights).is_null() ? nlohmann::json::object() : nlohmann::json(weights)}};
  if (pack) demand["pack"] = true;
  if (sources) demand["sources"] = true;
  if (split.any()) demand["split"] = nlohmann::json::parse(split.text());
  if (!where.empty()) demand["where"] = where;  // left out where there is none, as older files have it
  return demand.dump();
}

StoredDemand StoredDemand::parse(const std::string& text) {
  const auto stored = nlohmann::json::parse(text);
  return {
      .command = stored.at("command").get<bool>(),
      .data = stored.at("data").get<std::string>(),
      .gpus = stored.at("gpus").get<int>(),
      .result_version = stored.at("result_version").get<int>(),
      .weights = stored.at("weights").get<std::map<std::string, std::string>>(),
      .where = stored.value("where", Where{}),
      .split = stored.contains("split") ? protocol::Split::parse(stored["split"].dump()) : protocol::Split{},
      .pack = stored.value("pack", false),
      .sources = stored.value("sources", false)};
}

ShapeId QueueStore::shape_of(const StoredDemand& demand) {
  const std::string text = demand.text();
  const auto found = db_.prepared("SELECT id FROM shape WHERE demand = :demand")
                         .bind(":demand", text)
                         .one([](const Statement& row) { return static_cast<ShapeId>(row.integer(0)); });
  if (found) return *found;
  db_.prepared("INSERT INTO shape (demand) VALUES (:demand)").bind(":demand", text).run();
  return static_cast<ShapeId>(db_.last_insert_id());
}

void QueueStore::set_shape(TrialId trial) {
  auto demand =
      db_.prepared(
             "SELECT command_json <> '', data, gpus, result_version, where_json, pack <> '', split FROM "
             "trial WHERE "
             "id = :trial")
          .bind(":trial", trial)
          .one([](const Statement& row) {
            const bool command = row.integer(0) != 0;
            return StoredDemand{
                .command = command,
                .data = row.text(1),
                .gpus = static_cast<int>(row.integer(2)),
                .result_version = command ? 0 : static_cast<int>(row.integer(3)),
                .where = row.text(4).empty() ? Where{} : nlohmann::json::parse(row.text(4)).get<Where>(),
                .split = protocol::Split::parse(row.text(6)),
                .pack = row.integer(5) != 0};
          });
  if (!demand) throw Error{Code::kNotFound, "unknown trial " + std::to_string(trial)};
  const auto weights = db_.prepared("SELECT name, sha256 FROM trial_weights WHERE trial_id = :trial")
                           .bind(":trial", trial)
                           .all([](const Statement& row) {
                             return std::pair{row.text(0), row.text(1)};
                           });
  demand->weights = {weights.begin(), weights.end()};
  demand->sources = ChainStore{db_}.is_chained(trial);
  db_.prepared("UPDATE trial SET shape_id = :shape WHERE id = :trial")
      .bind(":shape", shape_of(*demand))
      .bind(":trial", trial)
      .run();
}

StoredDemand QueueStore::demand(ShapeId shape) const {
  const auto text = db_.prepared("SELECT demand FROM shape WHERE id = :shape")
                        .bind(":shape", shape)
                        .one([](const Statement& row) { return row.text(0); });
  if (!text) throw Error{Code::kNotFound, "unknown shape " + std::to_string(shape)};
  return StoredDemand::parse(*text);
}

void QueueStore::set_waiting(ShapeId shape, const std::string& reason) {
  db_.prepared("UPDATE shape SET waiting = :reason WHERE id = :shape")
      .bind(":reason", reason)
      .bind(":shape", shape)
      .run();
}

std::string QueueStore::waiting(ShapeId shape) const {
  return db_.prepared("SELECT waiting FROM shape WHERE id = :shape")
      .bind(":shape", shape)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("");
}

/// Where its newest checkpoint lies, or, before it has one, the weights that it takes from another trial.
std::string QueueStore::home_of(TrialId trial) const {
  auto home = db_.prepared(R"sql(SELECT c.host FROM run JOIN checkpoint c ON c.run_id = run.id
                      WHERE run.trial_id IN (:trial, (SELECT continues FROM trial WHERE id = :trial))
                      ORDER BY run.trial_id = :trial DESC, run.attempt DESC, c.step DESC LIMIT 1)sql")
                  .bind(":trial", trial)
                  .one([](const Statement& row) { return row.text(0); });
  if (home) return *home;
  for (const SourceFile& file : ChainStore{db_}.files(trial)) return file.checkpoint.host;
  return {};
}

/// Those where its program itself ended badly: a worker that is lost or in trouble says nothing of the host.
std::vector<std::string> QueueStore::failed_on(TrialId trial) const {
  return db_
      .prepared(R"sql(SELECT DISTINCT host FROM run
                      WHERE trial_id = :trial AND (state = 'failed' OR failure_rule <> '') ORDER BY host)sql")
      .bind(":trial", trial)
      .all([](const Statement& row) { return row.text(0); });
}

void QueueStore::each_open(const std::function<void(OpenTrial)>& take) const {
  OpenTrials trials{take, [this](TrialId trial) { return home_of(trial); },
                    [this](TrialId trial) { return failed_on(trial); }};
  auto& lines = db_.prepared(kOpenBetween).bind(":first", 0).bind(":last", std::int64_t{1} << 40);
  while (lines.step()) trials.read(lines);
  trials.hand_over();
}

std::optional<OpenTrial> QueueStore::open(TrialId trial) const {
  std::optional<OpenTrial> found;
  const TrialId one[] = {trial};
  each_open(one, [&](OpenTrial open) { found = std::move(open); });
  return found;
}

void QueueStore::each_open(std::span<const TrialId> trials,
                           const std::function<void(OpenTrial)>& take) const {
  if (!are_neighbours(trials)) {
    for (const TrialId trial : trials) {
      OpenTrials reader{take, [this](TrialId id) { return home_of(id); },
                        [this](TrialId id) { return failed_on(id); }};
      auto& lines = db_.prepared(kOneOpen).bind(":trial", trial);
      while (lines.step()) reader.read(lines);
      reader.hand_over();
    }
    return;
  }
  const std::function<void(OpenTrial)> pick = [&](OpenTrial trial) {
    if (std::ranges::binary_search(trials, trial.id)) take(std::move(trial));
  };
  OpenTrials reader{pick, [this](TrialId id) { return home_of(id); },
                    [this](TrialId id) { return failed_on(id); }};
  auto& lines = db_.prepared(kOpenBetween).bind(":first", trials.front()).bind(":last", trials.back());
  while (lines.step()) reader.read(lines);
  reader.hand_over();
}

std::optional<OpenSweep> QueueStore::sweep(SweepId sweep) const {
  return db_
      .prepared(
          "SELECT id, state = 'active' AND spent = '', priority, owner, weight, max_running, preempts, "
          "canary FROM sweep "
          "WHERE id = "
          ":sweep")
      .bind(":sweep", sweep)
      .one(read_open_sweep);
}

std::vector<OpenSweep> QueueStore::sweeps() const {
  return db_
      .prepared(
          "SELECT id, state = 'active' AND spent = '', priority, owner, weight, max_running, preempts, "
          "canary FROM sweep")
      .all(read_open_sweep);
}

std::map<std::string, std::string> QueueStore::pins() const {
  const auto pins = db_.prepared("SELECT name, sha256 FROM weights_pin").all([](const Statement& row) {
    return std::pair{row.text(0), row.text(1)};
  });
  return {pins.begin(), pins.end()};
}

}  // namespace abl::storage
