// SPDX-License-Identifier: Apache-2.0
#include "storage/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/provenance_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace abl::storage {
SweepId Removal::begin(const std::string& name, Time now) {
  const SweepRecord sweep = SweepStore{db_}.get_brief(name);
  refuse(sweep.id);
  if (!sweep.tunes.empty())
    throw Error{Code::kFailedPrecondition,
                fmt::format("sweep {} has the tuning trials of sweep {}: 'ablate rm {}' removes both", name,
                            sweep.tunes, sweep.tunes)};
  const auto open = [](const TrialCounts& trials) { return trials.open() + trials.held; };
  if (const auto wanted = open(sweep.trials) + (sweep.tuning ? open(sweep.tuning->trials) : 0); wanted > 0)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("sweep {0} has {1} that wait{2} or run{2}: 'ablate cancel {0}' first", name,
                    wanted == 1 ? "a trial" : fmt::format("{} trials", wanted), wanted == 1 ? "s" : "")};
  db_.prepared(
         "UPDATE sweep SET name = :name, state = 'cancelled', state_ms = :now, removing = 0, canary = 0 "
         "WHERE id = "
         ":sweep")
      .bind(":name", fmt::format("{} (being removed, {})", name, sweep.id))  // no file can have such a name
      .bind(":now", now)
      .bind(":sweep", sweep.id)
      .run();
  if (sweep.tuning) {
    db_.prepared("DELETE FROM sweep_tuning WHERE sweep_id = :sweep").bind(":sweep", sweep.id).run();
    begin(sweep.tuning->name, now);
  }
  return sweep.id;
}

std::optional<Removal::Left> Removal::left(SweepId sweep) const {
  return db_
      .prepared(R"sql(
      SELECT n.queued + n.leased + n.running + n.completed + n.failed + n.held + n.cancelled,
             (SELECT COUNT(*) FROM run CROSS JOIN sweep_trial st ON st.trial_id = run.trial_id AND st.sweep_id = s.id
              WHERE run.state IN ('leased', 'running')
                AND NOT EXISTS (SELECT 1 FROM sweep_trial o WHERE o.trial_id = run.trial_id AND o.sweep_id <> s.id))
      FROM sweep s LEFT JOIN sweep_count n ON n.sweep_id = s.id WHERE s.id = :sweep AND s.removing IS NOT NULL)sql")
      .bind(":sweep", sweep)
      .one([](const Statement& row) {
        return Left{.trials = static_cast<std::uint32_t>(row.integer(0)),
                    .stopping = static_cast<std::uint32_t>(row.integer(1))};
      });
}

void Removal::refuse(SweepId sweep) const {
  if (has("SELECT 1 FROM sweep WHERE id = :of AND removing IS NOT NULL", sweep))
    throw Error{Code::kFailedPrecondition,
                "this sweep is being removed: nothing of it can be changed any more"};
}

bool Removal::has(const char* sql, std::int64_t of) const {
  return db_.prepared(sql).bind(":of", of).one([](const Statement&) { return true; }).has_value();
}

/// Runs a deletion of `:rows` rows at most. Returns: how many went.
int Removal::take(const char* sql, std::int64_t of) {
  db_.prepared(sql).bind(":of", of).bind(":rows", std::max(rows_, 0)).run();
  const int went = db_.changes();
  rows_ -= went;
  return went;
}

Removal::Step Removal::step(Time now, int rows) {
  rows_ = rows;
  waits_ = false;
  const auto next =
      db_.prepared("SELECT id, removing FROM sweep WHERE removing IS NOT NULL ORDER BY id LIMIT 1")
          .one([](const Statement& row) {
            return std::pair{static_cast<SweepId>(row.integer(0)), row.integer(1)};
          });
  if (!next) return Step::kDone;
  const auto [sweep, looked_at] = *next;
  while (rows_ > 0 && remove_claim(sweep, now)) {
  }
  while (rows_ > 0 && !waits_ && remove_former(sweep)) {
  }
  if (waits_) return Step::kWaits;
  if (rows_ <= 0 || !erase_lines(sweep)) return Step::kMore;
  if (looked_at == 0 && !let_go_of_pins()) return Step::kMore;
  if (!forget_transitions(sweep, looked_at)) return Step::kMore;
  db_.prepared("DELETE FROM sweep WHERE id = :sweep").bind(":sweep", sweep).run();
  return Step::kMore;
}

/// The next claim of a sweep, with its trial where it is the last one on it. Returns: false when there is
/// none left, a run has to end first, or this step has done enough.
bool Removal::remove_claim(SweepId sweep, Time now) {
  struct Claim {
    int row, seed_index;
    TrialId trial;
  };
  const auto claim = db_.prepared(
                            "SELECT row, seed_index, trial_id FROM sweep_trial WHERE sweep_id = :sweep ORDER "
                            "BY row, seed_index LIMIT 1")
                         .bind(":sweep", sweep)
                         .one([](const Statement& row) {
                           return Claim{static_cast<int>(row.integer(0)), static_cast<int>(row.integer(1)),
                                        static_cast<TrialId>(row.integer(2))};
                         });
  if (!claim) return false;
  // a former one, of this sweep or another, is as good as claimed
  const bool shared = db_.prepared(R"sql(SELECT 1 FROM sweep_trial WHERE trial_id = :trial
                                           AND NOT (sweep_id = :sweep AND row = :row AND seed_index = :seed)
                                         UNION ALL SELECT 1 FROM sweep_former WHERE trial_id = :trial)sql")
                          .bind(":trial", claim->trial)
                          .bind(":sweep", sweep)
                          .bind(":row", claim->row)
                          .bind(":seed", claim->seed_index)
                          .one([](const Statement&) { return true; })
                          .has_value();
  if (!shared) {
    waits_ = has("SELECT 1 FROM trial WHERE id = :of AND state IN ('leased', 'running')", claim->trial);
    if (waits_ || !erase(claim->trial) || !erase_heir(claim->trial)) return false;
  }
  db_.prepared("DELETE FROM sweep_trial WHERE sweep_id = :sweep AND row = :row AND seed_index = :seed")
      .bind(":sweep", sweep)
      .bind(":row", claim->row)
      .bind(":seed", claim->seed_index)
      .run();
  rows_ -= 2;
  if (shared)  // another sweep that has given it up may be all that is left
    db_.prepared(
           R"sql(UPDATE trial SET state = 'cancelled', finished_ms = :now WHERE id = :trial AND state IN ('queued', 'held')
                       AND NOT EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = :trial AND withdrawn = 0))sql")
        .bind(":now", now)
        .bind(":trial", claim->trial)
        .run();
  else if (!has("SELECT 1 FROM run WHERE trial_id = :of", claim->trial))
    db_.prepared("DELETE FROM trial WHERE id = :trial").bind(":trial", claim->trial).run();
  return true;
}

/// The next trial that was a sweep's before it was extended, where nobody else has it. Returns: as
/// remove_claim.
bool Removal::remove_former(SweepId sweep) {
  struct Former {
    std::string row;
    std::int64_t seed, revision;
    TrialId trial;
  };
  const auto former =
      db_.prepared(
             "SELECT row, seed, revision, trial_id FROM sweep_former WHERE sweep_id = :sweep "
             "ORDER BY row, seed, revision LIMIT 1")
          .bind(":sweep", sweep)
          .one([](const Statement& row) {
            return Former{row.text(0), row.integer(1), row.integer(2), static_cast<TrialId>(row.integer(3))};
          });
  if (!former) return false;
  const bool shared = db_.prepared(R"sql(SELECT 1 FROM sweep_trial WHERE trial_id = :trial UNION ALL
                         SELECT 1 FROM sweep_former WHERE trial_id = :trial
                           AND NOT (sweep_id = :sweep AND row = :row AND seed = :seed AND revision = :revision))sql")
                          .bind(":trial", former->trial)
                          .bind(":sweep", sweep)
                          .bind(":row", former->row)
                          .bind(":seed", former->seed)
                          .bind(":revision", former->revision)
                          .one([](const Statement&) { return true; })
                          .has_value();
  if (!shared) {
    waits_ = has("SELECT 1 FROM trial WHERE id = :of AND state IN ('leased', 'running')", former->trial);
    if (waits_ || !erase(former->trial) || !erase_heir(former->trial)) return false;
  }
  db_.prepared(
         "DELETE FROM sweep_former WHERE sweep_id = :sweep AND row = :row AND seed = :seed AND revision = "
         ":revision")
      .bind(":sweep", sweep)
      .bind(":row", former->row)
      .bind(":seed", former->seed)
      .bind(":revision", former->revision)
      .run();
  rows_ -= 2;
  if (!shared && !has("SELECT 1 FROM run WHERE trial_id = :of", former->trial))
    db_.prepared("DELETE FROM trial WHERE id = :trial").bind(":trial", former->trial).run();
  return true;
}

/// All that a trial refers to, and the trials that it has replaced where nobody claims those. Its line stays:
/// the claim still needs it. Returns: whether everything is gone.
bool Removal::erase(TrialId trial) {
  for (;;) {
    const auto replaced = db_.prepared("SELECT id FROM trial WHERE replaced_by = :trial LIMIT 1")
                              .bind(":trial", trial)
                              .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
    if (!replaced) break;
    if (has("SELECT 1 FROM sweep_trial WHERE trial_id = :of UNION ALL SELECT 1 FROM sweep_former WHERE "
            "trial_id = :of",
            *replaced)) {
      // the newest of one identity is what sweeps share: that one, again
      db_.prepared("UPDATE trial SET reusable = 0 WHERE id = :trial AND reusable = 1")
          .bind(":trial", trial)
          .run();
      if (db_.changes() > 0)
        db_.prepared(R"sql(UPDATE trial SET reusable = 1 WHERE id = :trial AND NOT EXISTS (
                           SELECT 1 FROM trial o WHERE o.reusable = 1 AND o.config_hash = trial.config_hash
                             AND o.result_version = trial.result_version AND o.data_fingerprint = trial.data_fingerprint))sql")
            .bind(":trial", *replaced)
            .run();
      db_.prepared("UPDATE trial SET replaced_by = NULL WHERE id = :trial").bind(":trial", *replaced).run();
    } else {
      if (!erase(*replaced)) return false;
      db_.prepared("UPDATE trial SET replaced_by = NULL WHERE id = :trial").bind(":trial", *replaced).run();
      if (!has("SELECT 1 FROM run WHERE trial_id = :of", *replaced))
        db_.prepared("DELETE FROM trial WHERE id = :trial").bind(":trial", *replaced).run();
    }
    rows_ -= 1;
  }
  return erase_own(trial);
}

bool Removal::erase_own(TrialId trial) {
  // a sweep that is submitted between two steps does not find half a trial
  db_.prepared(
         "UPDATE trial SET reusable = 0, run_id = NULL, state = CASE WHEN state IN ('queued', 'held') THEN "
         "'cancelled' ELSE state "
         "END WHERE id = :trial AND (reusable = 1 OR run_id IS NOT NULL OR state IN ('queued', 'held'))")
      .bind(":trial", trial)
      .run();
  db_.prepared("UPDATE trial SET continues = NULL WHERE continues = :trial").bind(":trial", trial).run();
  if (!erase_runs(trial)) return false;
  db_.prepared("DELETE FROM trial_weights WHERE trial_id = :trial").bind(":trial", trial).run();
  // what takes its weights has ended, or those of another of its identity by now
  db_.prepared("DELETE FROM trial_source WHERE trial_id = :trial OR source_id = :trial")
      .bind(":trial", trial)
      .run();
  rows_ -= 1;
  return true;
}

/// The trial that was to replace this one and has lost its claim before it got to its end. Returns: whether
/// it is gone, where it was to go.
bool Removal::erase_heir(TrialId trial) {
  const auto heir = db_.prepared(R"sql(
      SELECT h.id FROM trial t CROSS JOIN trial h ON h.id = t.replaced_by WHERE t.id = :trial
        AND NOT EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = h.id)
        AND NOT EXISTS (SELECT 1 FROM sweep_former WHERE trial_id = h.id)
        AND NOT EXISTS (SELECT 1 FROM trial o WHERE o.replaced_by = h.id AND o.id <> :trial))sql")
                        .bind(":trial", trial)
                        .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  if (!heir) return true;
  waits_ = has("SELECT 1 FROM trial WHERE id = :of AND state IN ('leased', 'running')", *heir);
  if (waits_ || !erase_heir(*heir) || !erase_own(*heir)) return false;
  db_.prepared("UPDATE trial SET replaced_by = NULL WHERE id = :trial").bind(":trial", trial).run();
  if (!has("SELECT 1 FROM run WHERE trial_id = :of", *heir))
    db_.prepared("DELETE FROM trial WHERE id = :trial").bind(":trial", *heir).run();
  return true;
}

bool Removal::erase_runs(TrialId trial) {
  const auto runs = db_.prepared("SELECT id FROM run WHERE trial_id = :trial ORDER BY attempt DESC")
                        .bind(":trial", trial)
                        .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  for (const RunId run : runs)
    if (!erase_run(run)) return false;
  return true;
}

bool Removal::erase_run(RunId run) {
  rows_ = std::max(rows_, 1);
  // before the points that they are of
  take(
      "DELETE FROM point_block WHERE run_id = :of AND (metric_id, first_step) IN (SELECT metric_id, "
      "first_step FROM point_block WHERE run_id = :of LIMIT :rows)",
      run);
  if (rows_ <= 0) return false;
  // By the last of the next so many: a range of the key, whatever is behind it.
  const auto point = db_.prepared(
                            "SELECT metric_id, step FROM point WHERE run_id = :run ORDER BY metric_id, step "
                            "LIMIT 1 OFFSET :rows")
                         .bind(":run", run)
                         .bind(":rows", std::max(rows_, 0))
                         .one([](const Statement& row) {
                           return std::pair{row.integer(0), row.integer(1)};
                         });
  if (point) {
    db_.prepared("DELETE FROM point WHERE run_id = :run AND (metric_id, step) < (:metric, :step)")
        .bind(":run", run)
        .bind(":metric", point->first)
        .bind(":step", point->second)
        .run();
    rows_ = 0;
    return false;
  }
  db_.prepared("DELETE FROM point WHERE run_id = :run").bind(":run", run).run();
  rows_ -= db_.changes();
  for (const char* sql : {"DELETE FROM log_chunk WHERE rowid IN (SELECT rowid FROM log_chunk WHERE run_id = "
                          ":of ORDER BY offset LIMIT :rows)",
                          "DELETE FROM metric_summary WHERE run_id = :of AND metric_id IN (SELECT metric_id "
                          "FROM metric_summary WHERE run_id = "
                          ":of LIMIT :rows)",
                          "DELETE FROM checkpoint WHERE run_id = :of AND step IN (SELECT step FROM "
                          "checkpoint WHERE run_id = :of LIMIT :rows)",
                          "DELETE FROM probe_picture WHERE rowid IN (SELECT rowid FROM probe_picture WHERE "
                          "run_id = :of LIMIT :rows)",
                          "DELETE FROM probe WHERE rowid IN (SELECT rowid FROM probe WHERE run_id = :of "
                          "LIMIT :rows)",
                          "DELETE FROM resource_sample WHERE run_id = :of AND at_ms IN (SELECT at_ms FROM "
                          "resource_sample WHERE run_id = :of LIMIT :rows)",
                          "DELETE FROM resource_use WHERE run_id = :of AND :rows > 0"}) {
    rows_ = std::max(rows_, 1);  // at least something
    take(sql, run);
    if (rows_ <= 0) return false;
  }
  // what a name of data or weights stands for was said by this run, and holds for others
  if (has("SELECT 1 FROM data_pin WHERE run_id = :of UNION ALL SELECT 1 FROM weights_pin WHERE run_id = :of",
          run))
    return true;
  db_.prepared("DELETE FROM run_source WHERE run_id = :run").bind(":run", run).run();
  db_.prepared("DELETE FROM run_part WHERE run_id = :run").bind(":run", run).run();
  db_.prepared("UPDATE run SET resumed_from_run = NULL WHERE resumed_from_run = :run")
      .bind(":run", run)
      .run();
  db_.prepared("DELETE FROM run WHERE id = :run").bind(":run", run).run();
  rows_ -= 1;
  return true;
}

/// A sweep's own lines. Returns: whether all are gone.
bool Removal::erase_lines(SweepId sweep) {
  for (const char* sql : {"DELETE FROM sweep_paper WHERE sweep_id = :of AND (row, name) IN (SELECT row, name "
                          "FROM sweep_paper WHERE sweep_id = "
                          ":of LIMIT :rows)",
                          "DELETE FROM sweep_row WHERE sweep_id = :of AND position IN (SELECT position FROM "
                          "sweep_row WHERE sweep_id = :of LIMIT "
                          ":rows)",
                          "DELETE FROM sweep_seed WHERE sweep_id = :of AND position IN (SELECT position FROM "
                          "sweep_seed WHERE sweep_id = :of LIMIT "
                          ":rows)",
                          "DELETE FROM growth_due WHERE sweep_id = :of AND row IN (SELECT row FROM "
                          "growth_due WHERE sweep_id = :of LIMIT :rows)",
                          "DELETE FROM tuning_point WHERE sweep_id = :of AND (row, point, rung) IN (SELECT "
                          "row, point, rung FROM tuning_point WHERE sweep_id = :of LIMIT :rows)",
                          "DELETE FROM tuning_choice WHERE sweep_id = :of AND row IN (SELECT row FROM "
                          "tuning_choice WHERE sweep_id = :of LIMIT :rows)",
                          "DELETE FROM sweep_growth WHERE sweep_id = :of AND row IN (SELECT row FROM "
                          "sweep_growth WHERE sweep_id = :of LIMIT :rows)",
                          "DELETE FROM sweep_level WHERE sweep_id = :of AND (factor, level) IN (SELECT "
                          "factor, level FROM sweep_level WHERE "
                          "sweep_id = :of LIMIT :rows)"}) {
    take(sql, sweep);
    if (rows_ <= 0) return false;
  }
  db_.prepared("DELETE FROM sweep_column WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  db_.prepared("DELETE FROM sweep_revision WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  db_.prepared("DELETE FROM growth_rule WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  db_.prepared("DELETE FROM sweep_count WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  ProvenanceStore{db_}.forget(sweep);
  return true;
}

/// What became of trials that are not there any more. The newest step stays: no number of one is given twice,
/// so that who looks at steps after a number misses none. Returns: whether all were looked at.
bool Removal::forget_transitions(SweepId sweep, std::int64_t from) {
  const auto ends = db_.prepared("SELECT (SELECT MIN(id) FROM transition), (SELECT MAX(id) FROM transition)")
                        .one([](const Statement& row) {
                          return std::pair{row.integer(0), row.integer(1)};
                        })
                        .value();
  const std::int64_t first = std::max(from, ends.first - 1), to = first + rows_;
  db_.prepared(R"sql(DELETE FROM transition WHERE id > :from AND id <= :to AND id < :newest
                     AND NOT EXISTS (SELECT 1 FROM trial WHERE trial.id = transition.trial_id))sql")
      .bind(":from", first)
      .bind(":to", to)
      .bind(":newest", ends.second)
      .run();
  db_.prepared("UPDATE sweep SET removing = :to WHERE id = :sweep")
      .bind(":to", to)
      .bind(":sweep", sweep)
      .run();
  return to >= ends.second;
}

/// Runs that were kept since a name of data or weights stands for what they have reported: where no trial
/// that anybody claims needs that name any more, it is free, and they go.
bool Removal::let_go_of_pins() {
  struct Pin {
    std::string name;
    RunId run;
    TrialId trial;
  };
  for (const bool weights : {false, true}) {
    const auto pins = db_.prepared(weights ? R"sql(
              SELECT name, run_id, run.trial_id FROM weights_pin JOIN run ON run.id = run_id
              WHERE NOT EXISTS (SELECT 1 FROM sweep_trial st WHERE st.trial_id = run.trial_id)
                AND NOT EXISTS (SELECT 1 FROM sweep_former f WHERE f.trial_id = run.trial_id)
                AND NOT EXISTS (SELECT 1 FROM trial_weights w CROSS JOIN sweep_trial st ON st.trial_id = w.trial_id
                                WHERE w.name = weights_pin.name))sql"
                                           : R"sql(
              SELECT data, run_id, run.trial_id FROM data_pin JOIN run ON run.id = run_id
              WHERE NOT EXISTS (SELECT 1 FROM sweep_trial st WHERE st.trial_id = run.trial_id)
                AND NOT EXISTS (SELECT 1 FROM sweep_former f WHERE f.trial_id = run.trial_id)
                AND NOT EXISTS (SELECT 1 FROM trial t CROSS JOIN sweep_trial st ON st.trial_id = t.id
                                WHERE t.data = data_pin.data))sql")
                          .all([](const Statement& row) {
                            return Pin{row.text(0), static_cast<RunId>(row.integer(1)),
                                       static_cast<TrialId>(row.integer(2))};
                          });
    for (const Pin& pin : pins) {
      if (!erase_run(pin.run)) return false;  // what it has said: a run stays for its pin
      db_.prepared(weights ? "DELETE FROM weights_pin WHERE name = :name"
                           : "DELETE FROM data_pin WHERE data = :name")
          .bind(":name", pin.name)
          .run();
      if (has("SELECT 1 FROM data_pin WHERE run_id = :of UNION ALL SELECT 1 FROM weights_pin WHERE run_id = "
              ":of",
              pin.run))
        continue;
      if (!erase(pin.trial)) return false;
      if (!has("SELECT 1 FROM run WHERE trial_id = :of", pin.trial))
        db_.prepared("DELETE FROM trial WHERE id = :trial").bind(":trial", pin.trial).run();
    }
  }
  return true;
}

}  // namespace abl::storage
