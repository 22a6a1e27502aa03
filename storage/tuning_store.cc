// SPDX-License-Identifier: Apache-2.0
#include "storage/tuning_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "protocol/number.h"
#include "storage/sweep_store.h"

namespace abl::storage {
namespace {

using nlohmann::json;

std::map<std::string, std::string> values_of(const std::string& text) {
  return json::parse(text).get<std::map<std::string, std::string>>();
}

std::optional<TrialId> first_trial(Database& db, SweepId by, const std::string& tuning_row) {
  return db
      .prepared(
          R"sql(SELECT st.trial_id FROM sweep_row r JOIN sweep_trial st ON st.sweep_id = r.sweep_id AND st.row = r.position
                      WHERE r.sweep_id = :by AND r.id = :row ORDER BY st.seed_index LIMIT 1)sql")
      .bind(":by", by)
      .bind(":row", tuning_row)
      .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
}

std::vector<std::int64_t> seeds_of(Database& db, SweepId sweep) {
  return db.prepared("SELECT seed FROM sweep_seed WHERE sweep_id = :sweep ORDER BY position")
      .bind(":sweep", sweep)
      .all([](const Statement& row) { return row.integer(0); });
}

void insert_points(Database& db, SweepId sweep, const std::vector<NewTuningPoint>& points) {
  for (const NewTuningPoint& point : points)
    db.prepared(R"sql(
        INSERT INTO tuning_point (sweep_id, row, point, rung, tuning_row, point_values, rung_value, tried,
                                  tried_version, config, config_hash, work_hash, result_version)
        VALUES (:sweep, :row, :point, :rung, :tuning_row, :values, :rung_value, :tried,
                :tried_version, :config, :config_hash, :work_hash, :result_version))sql")
        .bind(":sweep", sweep)
        .bind(":row", point.row)
        .bind(":point", point.point)
        .bind(":rung", point.rung)
        .bind(":tuning_row", point.tuning_row)
        .bind(":values", point.values_json)
        .bind(":rung_value", point.rung_value)
        .bind(":tried", point.tried)
        .bind(":tried_version", point.tried_version)
        .bind(":config", point.config)
        .bind(":config_hash", point.config_hash)
        .bind(":work_hash", point.work_hash)
        .bind(":result_version", point.result_version)
        .run();
}

TuningChoice read_choice(const Statement& row) {
  TuningChoice choice{.row = row.text(0),
                      .values = values_of(row.text(2)),
                      .completed = static_cast<int>(row.integer(5)),
                      .budget = static_cast<int>(row.integer(6)),
                      .why = row.text(7)};
  if (!row.is_null(1)) choice.point = static_cast<int>(row.integer(1));
  if (!row.is_null(3)) choice.value = row.real(3);
  for (const json& mean : json::parse(row.text(4)))
    choice.means.emplace_back(mean[0].get<int>(),
                              mean[1].is_null() ? std::nullopt : std::optional{mean[1].get<double>()});
  return choice;
}

/// Adds what the trials of a row's points came to.
void read_values(Database& db, SweepId sweep, SweepId by, const std::string& row_id,
                 const std::string& metric, RowTuning& row) {
  const auto seeds = seeds_of(db, by).size();
  std::map<std::pair<int, int>, TunedPoint*> places;
  for (TunedPoint& point : row.points) {
    point.values_by_seed.resize(seeds);
    places[{point.point, point.rung}] = &point;
  }
  auto& lines = db.prepared(R"sql(
      SELECT p.point, p.rung, st.seed_index, st.seed, t.state, st.withdrawn, COALESCE(m.last, m.last_kind),
             m.run_id IS NOT NULL, m.count > m.finite
      FROM tuning_point p
      CROSS JOIN sweep_row r ON r.sweep_id = :by AND r.id = p.tuning_row
      CROSS JOIN sweep_trial st ON st.sweep_id = :by AND st.row = r.position
      CROSS JOIN trial t ON t.id = st.trial_id
      LEFT JOIN metric_summary m ON m.run_id = t.run_id AND t.state = 'completed'
        AND m.metric_id = (SELECT id FROM metric WHERE name = :metric)
      WHERE p.sweep_id = :sweep AND p.row = :row)sql");
  lines.bind(":sweep", sweep).bind(":by", by).bind(":row", row_id).bind(":metric", metric);
  lines.all([&](const Statement& line) {
    TunedPoint& point = *places.at({static_cast<int>(line.integer(0)), static_cast<int>(line.integer(1))});
    TrialState state = trial_state(line.text(4));
    const bool ended = state == TrialState::kCompleted || state == TrialState::kFailed;
    if (line.integer(5) != 0 && !ended) state = TrialState::kCancelled;
    const auto trouble = [&](const char* what) {
      if (point.trouble.empty()) point.trouble = fmt::format("seed {} {}", line.integer(3), what);
    };
    switch (state) {
      case TrialState::kQueued:
        ++point.trials.queued;
        break;
      case TrialState::kLeased:
        ++point.trials.leased;
        break;
      case TrialState::kRunning:
        ++point.trials.running;
        break;
      case TrialState::kHeld:
        ++point.trials.held;
        trouble("is held");
        break;
      case TrialState::kFailed:
        ++point.trials.failed;
        trouble("failed");
        break;
      case TrialState::kCancelled:
        ++point.trials.cancelled;
        trouble("is cancelled");
        break;
      case TrialState::kCompleted:
        ++point.trials.completed;
        if (line.integer(7) == 0)
          trouble("did not report the metric");
        else if (protocol::non_finite_value(line.text(6)) || line.integer(8) != 0)
          trouble("diverged");
        else
          point.values_by_seed.at(static_cast<std::size_t>(line.integer(2))) = line.real(6);
        break;
    }
    return true;
  });
}

}  // namespace

void TuningStore::insert(SweepId sweep, SweepId by, const std::string& tune_json,
                         const std::vector<NewTuningPoint>& points) {
  db_.prepared(
         "INSERT INTO sweep_tuning (sweep_id, by_id, tune, rows, open, failed) VALUES (:sweep, :by, :tune, "
         "0, "
         "0, 0)")
      .bind(":sweep", sweep)
      .bind(":by", by)
      .bind(":tune", tune_json)
      .run();
  insert_points(db_, sweep, points);
  recount(sweep);
}

void TuningStore::replace(SweepId sweep, const std::string& tune_json,
                          const std::vector<NewTuningPoint>& points,
                          const std::vector<std::string>& keep_choices) {
  db_.prepared("UPDATE sweep_tuning SET tune = :tune WHERE sweep_id = :sweep")
      .bind(":tune", tune_json)
      .bind(":sweep", sweep)
      .run();
  db_.prepared("DELETE FROM tuning_point WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  db_.prepared(
         "DELETE FROM tuning_choice WHERE sweep_id = :sweep AND row NOT IN (SELECT value FROM "
         "json_each(:keep))")
      .bind(":sweep", sweep)
      .bind(":keep", json(keep_choices).dump())
      .run();
  insert_points(db_, sweep, points);
  recount(sweep);
}

std::optional<SweepId> TuningStore::tuning_of(SweepId sweep) const {
  return db_.prepared("SELECT by_id FROM sweep_tuning WHERE sweep_id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
}

std::optional<SweepId> TuningStore::tuned_by(SweepId by) const {
  return db_.prepared("SELECT sweep_id FROM sweep_tuning WHERE by_id = :by")
      .bind(":by", by)
      .one([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
}

std::vector<std::pair<SweepId, std::string>> TuningStore::waiting_for(TrialId trial) const {
  return db_
      .prepared(R"sql(
      SELECT DISTINCT u.sweep_id, p.row FROM sweep_trial st
      CROSS JOIN sweep_tuning u ON u.by_id = st.sweep_id
      CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      CROSS JOIN tuning_point p ON p.sweep_id = u.sweep_id AND p.tuning_row = r.id
      WHERE st.trial_id = :trial
        AND NOT EXISTS (SELECT 1 FROM tuning_choice c WHERE c.sweep_id = u.sweep_id AND c.row = p.row AND c.point IS NOT NULL))sql")
      .bind(":trial", trial)
      .all([](const Statement& row) {
        return std::pair{static_cast<SweepId>(row.integer(0)), row.text(1)};
      });
}

bool TuningStore::waits(SweepId sweep, const std::string& row) const {
  return db_
      .prepared(R"sql(
      SELECT 1 FROM sweep_tuning u
      CROSS JOIN tuning_point p ON p.sweep_id = u.sweep_id AND p.row = :row
      CROSS JOIN sweep_row r ON r.sweep_id = u.by_id AND r.id = p.tuning_row
      CROSS JOIN sweep_trial st ON st.sweep_id = u.by_id AND st.row = r.position AND st.withdrawn = 0
      CROSS JOIN trial t ON t.id = st.trial_id AND t.state IN ('queued', 'leased', 'running', 'held')
      WHERE u.sweep_id = :sweep ORDER BY p.point DESC, p.rung DESC LIMIT 1)sql")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .one([](const Statement&) { return true; })
      .has_value();
}

std::vector<std::string> TuningStore::unchosen(SweepId sweep) const {
  return db_
      .prepared(R"sql(
      SELECT DISTINCT p.row FROM tuning_point p WHERE p.sweep_id = :sweep AND NOT EXISTS (
        SELECT 1 FROM tuning_choice c WHERE c.sweep_id = p.sweep_id AND c.row = p.row AND c.point IS NOT NULL))sql")
      .bind(":sweep", sweep)
      .all([](const Statement& row) { return row.text(0); });
}

std::string TuningStore::tune_json(SweepId sweep) const {
  return db_.prepared("SELECT tune FROM sweep_tuning WHERE sweep_id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("{}");
}

std::vector<TuningChoice> TuningStore::choices(SweepId sweep, const std::string& row) const {
  static const std::string all =
      "SELECT row, point, point_values, value, means, completed, budget, why FROM tuning_choice WHERE "
      "sweep_id "
      "= :sweep";
  static const std::string one = all + " AND row = :row";
  if (row.empty()) return db_.prepared(all.c_str()).bind(":sweep", sweep).all(read_choice);
  return db_.prepared(one.c_str()).bind(":sweep", sweep).bind(":row", row).all(read_choice);
}

std::optional<SweepTuning> TuningStore::read(SweepId sweep, const std::string& only) const {
  const Transaction snapshot{db_, Transaction::kRead};
  auto tuning =
      db_.prepared(R"sql(SELECT u.by_id, s.name, u.tune FROM sweep_tuning u JOIN sweep s ON s.id = u.by_id
                                   WHERE u.sweep_id = :sweep)sql")
          .bind(":sweep", sweep)
          .one([](const Statement& row) {
            return SweepTuning{.by = static_cast<SweepId>(row.integer(0)),
                               .by_name = row.text(1),
                               .tune_json = row.text(2),
                               .rows = {}};
          });
  if (!tuning) return tuning;
  const std::string metric = json::parse(tuning->tune_json).value("metric", "");
  static const std::string points = R"sql(
      SELECT r.position, r.id, r.label, p.point, p.rung, p.tuning_row, p.point_values, p.rung_value
      FROM sweep_row r CROSS JOIN tuning_point p ON p.sweep_id = r.sweep_id AND p.row = r.id
      WHERE r.sweep_id = :sweep)sql";
  static const std::string all = points + " ORDER BY r.position, p.rung, p.point";
  static const std::string one = points + " AND r.id = :row ORDER BY p.rung, p.point";
  Statement& lines = db_.prepared(only.empty() ? all.c_str() : one.c_str());
  lines.bind(":sweep", sweep);
  if (!only.empty()) lines.bind(":row", only);
  lines.all([&](const Statement& line) {
    if (tuning->rows.empty() || tuning->rows.back().position != line.integer(0))
      tuning->rows.push_back({.position = static_cast<int>(line.integer(0)),
                              .row = line.text(1),
                              .label = line.text(2),
                              .points = {},
                              .choice = {}});
    tuning->rows.back().points.push_back({.point = static_cast<int>(line.integer(3)),
                                          .rung = static_cast<int>(line.integer(4)),
                                          .tuning_row = line.text(5),
                                          .values = values_of(line.text(6)),
                                          .rung_value = line.text(7),
                                          .values_by_seed = {},
                                          .trials = {},
                                          .trouble = {}});
    return true;
  });
  const auto choices = this->choices(sweep, only);
  for (RowTuning& row : tuning->rows) {
    read_values(db_, sweep, tuning->by, row.row, metric, row);
    const auto choice = std::ranges::find(choices, row.row, &TuningChoice::row);
    if (choice == choices.end()) continue;
    row.choice = *choice;
    if (choice->point && !row.points.empty())
      for (TunedPoint& point : row.points)
        point.best = point.point == *choice->point && point.rung == row.points.back().rung;
  }
  return tuning;
}

void TuningStore::begin(SweepId sweep, const std::string& row, int point, int rung, Time now,
                        const WithSeed& with_seed) {
  struct Rung {
    std::string tried, tuning_row, before;
    int version = 0, position = 0;
  };
  const auto by = tuning_of(sweep).value();
  const auto next = db_.prepared(R"sql(
      SELECT p.tried, p.tuning_row, b.tuning_row, p.tried_version, r.position FROM tuning_point p
      JOIN tuning_point b ON b.sweep_id = p.sweep_id AND b.row = p.row AND b.point = p.point AND b.rung = 0
      JOIN sweep_row r ON r.sweep_id = :by AND r.id = p.tuning_row
      WHERE p.sweep_id = :sweep AND p.row = :row AND p.point = :point AND p.rung = :rung)sql")
                        .bind(":by", by)
                        .bind(":sweep", sweep)
                        .bind(":row", row)
                        .bind(":point", point)
                        .bind(":rung", rung)
                        .one([](const Statement& line) {
                          return Rung{line.text(0), line.text(1), line.text(2),
                                      static_cast<int>(line.integer(3)), static_cast<int>(line.integer(4))};
                        });
  if (!next) throw Error{Code::kNotFound, fmt::format("row {} has no rung {} of point {}", row, rung, point)};
  const auto like = first_trial(db_, by, next->before);
  if (!like) throw Error{Code::kNotFound, fmt::format("point {} of row {} has no trials", point, row)};
  int index = 0;
  for (const std::int64_t seed : seeds_of(db_, by))
    SweepStore{db_}.claim_like(by, next->position, index++, seed, *like,
                               with_seed(next->tried, next->version, seed), now);
}

void TuningStore::choose(SweepId sweep, const TuningChoice& choice, std::uint32_t seeds, Time now,
                         const WithSeed& with_seed) {
  json means = json::array();
  for (const auto& [point, mean] : choice.means) means.push_back({point, mean ? json(*mean) : json()});
  const bool failed_before =
      db_.prepared("SELECT 1 FROM tuning_choice WHERE sweep_id = :sweep AND row = :row AND point IS NULL")
          .bind(":sweep", sweep)
          .bind(":row", choice.row)
          .one([](const Statement&) { return true; })
          .has_value();
  db_.prepared(R"sql(
      INSERT INTO tuning_choice (sweep_id, row, point, point_values, value, means, completed, budget, why, time_ms)
      VALUES (:sweep, :row, :point, :values, :value, :means, :completed, :budget, :why, :now)
      ON CONFLICT DO UPDATE SET point = excluded.point, point_values = excluded.point_values, value = excluded.value,
        means = excluded.means, completed = excluded.completed, budget = excluded.budget, why = excluded.why,
        time_ms = excluded.time_ms WHERE point IS NULL)sql")
      .bind(":sweep", sweep)
      .bind(":row", choice.row)
      .bind(":point", choice.point ? std::optional{std::int64_t{*choice.point}} : std::nullopt)
      .bind(":values", json(choice.values).dump())
      .bind(":value", choice.value)
      .bind(":means", means.dump())
      .bind(":completed", choice.completed)
      .bind(":budget", choice.budget)
      .bind(":why", choice.why)
      .bind(":now", now)
      .run();
  if (db_.changes() == 0) return;  // it was made before, and stays
  db_.prepared(
         "UPDATE sweep_tuning SET open = open - :decided, failed = failed + :failed WHERE sweep_id = :sweep")
      .bind(":decided", failed_before ? 0 : 1)
      .bind(":failed", (choice.point ? 0 : 1) - (failed_before ? 1 : 0))
      .bind(":sweep", sweep)
      .run();
  touch(sweep);
  if (choice.point) apply(sweep, choice, seeds, now, with_seed);
}

void TuningStore::apply(SweepId sweep, const TuningChoice& choice, std::uint32_t seeds, Time now,
                        const WithSeed& with_seed) {
  struct Best {
    std::string config, config_hash, work_hash, tuning_row;
    int version = 0, position = 0;
  };
  const auto best = db_.prepared(R"sql(
      SELECT p.config, p.config_hash, p.work_hash, b.tuning_row, p.result_version, r.position FROM tuning_point p
      JOIN tuning_point b ON b.sweep_id = p.sweep_id AND b.row = p.row AND b.point = p.point AND b.rung = 0
      JOIN sweep_row r ON r.sweep_id = p.sweep_id AND r.id = p.row
      WHERE p.sweep_id = :sweep AND p.row = :row AND p.point = :point ORDER BY p.rung DESC LIMIT 1)sql")
                        .bind(":sweep", sweep)
                        .bind(":row", choice.row)
                        .bind(":point", std::int64_t{*choice.point})
                        .one([](const Statement& line) {
                          return Best{line.text(0),
                                      line.text(1),
                                      line.text(2),
                                      line.text(3),
                                      static_cast<int>(line.integer(4)),
                                      static_cast<int>(line.integer(5))};
                        });
  const auto like = best ? first_trial(db_, tuning_of(sweep).value(), best->tuning_row) : std::nullopt;
  if (!like) throw Error{Code::kNotFound, fmt::format("row {} has no point {}", choice.row, *choice.point)};
  db_.prepared(
         R"sql(UPDATE sweep_row SET set_json = json_patch(set_json, :values), config_hash = :hash, work_hash = :work
                     WHERE sweep_id = :sweep AND position = :row)sql")
      .bind(":values", json(choice.values).dump())
      .bind(":hash", best->config_hash)
      .bind(":work", best->work_hash)
      .bind(":sweep", sweep)
      .bind(":row", best->position)
      .run();
  const auto all = seeds_of(db_, sweep);
  for (std::size_t i = 0; i < std::min<std::size_t>(seeds, all.size()); ++i)
    SweepStore{db_}.claim_like(sweep, best->position, static_cast<int>(i), all[i], *like,
                               with_seed(best->config, best->version, all[i]), now);
}

void TuningStore::recount(SweepId sweep) {
  db_.prepared(R"sql(
      UPDATE sweep_tuning SET
        rows = (SELECT COUNT(DISTINCT row) FROM tuning_point WHERE sweep_id = :sweep),
        failed = (SELECT COUNT(*) FROM tuning_choice WHERE sweep_id = :sweep AND point IS NULL),
        open = (SELECT COUNT(DISTINCT row) FROM tuning_point WHERE sweep_id = :sweep) -
               (SELECT COUNT(*) FROM tuning_choice WHERE sweep_id = :sweep)
      WHERE sweep_id = :sweep)sql")
      .bind(":sweep", sweep)
      .run();
  touch(sweep);
}

void TuningStore::touch(SweepId sweep) {
  db_.prepared("UPDATE sweep SET state = state WHERE id = :sweep").bind(":sweep", sweep).run();
}

void TuningStore::reopen(SweepId sweep, const std::string& row) {
  db_.prepared(
         "DELETE FROM tuning_choice WHERE sweep_id = :sweep AND point IS NULL AND (:row = '' OR row = :row)")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .run();
  recount(sweep);
}

std::vector<std::string> TuningStore::tuning_rows(SweepId sweep, const std::string& row) const {
  return db_.prepared("SELECT tuning_row FROM tuning_point WHERE sweep_id = :sweep AND row = :row")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .all([](const Statement& line) { return line.text(0); });
}

}  // namespace abl::storage
