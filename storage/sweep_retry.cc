// SPDX-License-Identifier: Apache-2.0
// How trials of a sweep are withdrawn, queued again, or replaced by new ones.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "base/nearest_name.h"
#include "storage/breaker_store.h"
#include "storage/chain_store.h"
#include "storage/due_versions.h"
#include "storage/queue_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/unfilled.h"

namespace abl::storage {
/// A failed or cancelled trial back to the queue, with all its retries; a held one too where `held` is
/// wanted.
bool SweepStore::queue_again(TrialId trial, Retry which) {
  db_.prepared(
         R"sql(UPDATE trial SET state = 'queued', failures = 0, retried = '', losses = 0, deaths = 0, reason = '', waiting = '', not_before_ms = 0,
                               finished_ms = NULL, held_for_source = 0
              WHERE id = :trial AND (:ended AND state IN ('failed', 'cancelled') OR :held AND state = 'held'))sql")
      .bind(":ended", which.ended)
      .bind(":held", which.held)
      .bind(":trial", trial)
      .run();
  return db_.changes() > 0;
}

/// A few run first where many wait and none has completed.
void SweepStore::begin_canary(SweepId sweep) {
  db_.prepared(R"sql(UPDATE sweep SET canary = 1 WHERE id = :sweep AND breaker
                    AND (SELECT queued >= :many AND completed = 0 FROM sweep_count WHERE sweep_id = :sweep))sql")
      .bind(":many", std::int64_t{SweepStore::kCanaryFrom})
      .bind(":sweep", sweep)
      .run();
}

std::vector<RunId> SweepStore::withdraw(SweepId sweep, Time now) {
  Transaction transaction{db_, Transaction::kSavepoint};
  set_state(sweep, SweepState::kCancelled, now);
  db_.prepared("UPDATE sweep_trial SET withdrawn = 1 WHERE sweep_id = :sweep").bind(":sweep", sweep).run();
  auto runs = cancel_unclaimed(sweep, std::nullopt, now);
  BreakerStore{db_}.give_up(sweep, now);
  transaction.commit();
  return runs;
}

std::vector<RunId> SweepStore::withdraw(SweepId sweep, const std::string& row, std::int64_t seed, Time now) {
  Transaction transaction{db_, Transaction::kSavepoint};
  struct Claimed {
    TrialId trial = 0;
    std::int64_t position = 0;
    std::string state;
    bool withdrawn = false;
  };
  const auto claim = db_.prepared(R"sql(
      SELECT st.trial_id, st.row, t.state, st.withdrawn FROM sweep_trial st
      JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row JOIN trial t ON t.id = st.trial_id
      WHERE st.sweep_id = :sweep AND r.id = :row AND st.seed = :seed)sql")
                         .bind(":sweep", sweep)
                         .bind(":row", row)
                         .bind(":seed", seed)
                         .one([](const Statement& found) {
                           return Claimed{.trial = static_cast<TrialId>(found.integer(0)),
                                          .position = found.integer(1),
                                          .state = found.text(2),
                                          .withdrawn = found.integer(3) != 0};
                         });
  if (!claim)
    throw Error{Code::kNotFound, fmt::format("sweep {} has no trial of row '{}' and seed {}",
                                             name_or_nothing(sweep), row, seed)};
  if (claim->withdrawn || claim->state == "completed" || claim->state == "failed" ||
      claim->state == "cancelled")
    throw Error{Code::kFailedPrecondition, fmt::format("the trial of row {} and seed {} is already {}", row,
                                                       seed, claim->withdrawn ? "cancelled" : claim->state)};
  db_.prepared("UPDATE sweep_trial SET withdrawn = 1 WHERE sweep_id = :sweep AND row = :row AND seed = :seed")
      .bind(":sweep", sweep)
      .bind(":row", claim->position)
      .bind(":seed", seed)
      .run();
  auto runs = cancel_unclaimed(sweep, claim->trial, now);
  transaction.commit();
  return runs;
}

/// Cancels the waiting trials of a sweep, or `trial` alone, that nobody claims any more. Returns the runs
/// under way of such trials.
std::vector<RunId> SweepStore::cancel_unclaimed(SweepId sweep, std::optional<TrialId> trial, Time now) {
  db_.prepared(R"sql(UPDATE trial SET state = 'cancelled', reason = '', finished_ms = :now
                     WHERE state IN ('queued', 'held') AND (:trial IS NULL OR id = :trial)
                       AND id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep)
                       AND NOT EXISTS (SELECT 1 FROM sweep_trial c WHERE c.trial_id = trial.id AND c.withdrawn = 0))sql")
      .bind(":sweep", sweep)
      .bind(":trial", trial)
      .bind(":now", now)
      .run();
  auto runs = db_.prepared(R"sql(SELECT run_id FROM trial
                                 WHERE state IN ('leased', 'running') AND (:trial IS NULL OR id = :trial)
                                   AND id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep)
                                   AND NOT EXISTS (SELECT 1 FROM sweep_trial c WHERE c.trial_id = trial.id AND c.withdrawn = 0))sql")
                  .bind(":sweep", sweep)
                  .bind(":trial", trial)
                  .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  give_places_back(sweep, trial);
  return runs;
}

std::string SweepStore::name_or_nothing(SweepId sweep) const {
  return db_.prepared("SELECT name FROM sweep WHERE id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.text(0); })
      .value_or("");
}

/// Completed trials that were to run again have their places back where the new ones did not get to their
/// ends.
void SweepStore::give_places_back(SweepId sweep, std::optional<TrialId> trial) {
  const auto places =
      db_.prepared(R"sql(
      SELECT o.id, st.trial_id FROM trial o CROSS JOIN sweep_trial st ON st.trial_id = o.replaced_by AND st.sweep_id = :sweep
      CROSS JOIN trial t ON t.id = st.trial_id AND t.state NOT IN ('completed', 'failed')
      WHERE o.replaced_by IS NOT NULL AND o.state = 'completed' AND (:trial IS NULL OR st.trial_id = :trial))sql")
          .bind(":sweep", sweep)
          .bind(":trial", trial)
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
  if (!row_id.empty() && std::ranges::find(rows, row_id) == rows.end())
    throw Error{Code::kNotFound, "sweep " + name_or_nothing(sweep) + " has no row '" + row_id + "'" +
                                     did_you_mean(row_id, rows)};
  // a cancelled sweep claims its trials again: those that ended all of them, others those that run again
  db_.prepared(
         R"sql(UPDATE sweep_trial SET withdrawn = 0 WHERE sweep_id = :sweep AND :ended AND (:seed IS NULL OR seed = :seed)
                     AND (:row = '' OR row = (SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :row)))sql")
      .bind(":sweep", sweep)
      .bind(":seed", which.seed)
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
      SELECT DISTINCT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND (:seed IS NULL OR seed = :seed)
      AND (:row = '' OR row = (SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :row)))sql")
                          .bind(":sweep", sweep)
                          .bind(":seed", which.seed)
                          .bind(":row", row_id)
                          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  if (which.seed && trials.empty())
    throw Error{Code::kNotFound, fmt::format("sweep {} has no trial of row '{}' and seed {}",
                                             name_or_nothing(sweep), row_id, *which.seed)};
  std::uint32_t queued = 0;
  std::vector<TrialId> queued_again;
  if (!row_id.empty() && (which.ended || which.held))
    for (const TrialId trial : trials) queued += retry_sources(sweep, trial);
  for (const TrialId trial : trials) {
    const bool again = which.ended || which.held ? queue_again(trial, which) : false;
    if (again)
      db_.prepared("UPDATE sweep_trial SET withdrawn = 0 WHERE sweep_id = :sweep AND trial_id = :trial")
          .bind(":sweep", sweep)
          .bind(":trial", trial)
          .run();
    if (again) queued_again.push_back(trial);
    queued += again || run_again(sweep, TrialStore{db_}.get(trial), renewed, which);
    if (which.before_mend) queued += renew_open(sweep, trial, renewed);
  }
  queued -= static_cast<std::uint32_t>(std::ranges::count_if(queued_again, [&](TrialId trial) {
    return TrialStore{db_}.get(trial).state == TrialState::kHeld;  // again: its source cannot be completed
  }));
  if (which.ended || which.held) {
    BreakerStore{db_}.want(sweep, now);
    row_id.empty() ? BreakerStore{db_}.reset(sweep) : BreakerStore{db_}.reset(sweep, row_id);
    begin_canary(sweep);
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
    const bool again = queue_again(source, {});
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
  queue_again(other, {.held = false});
  note_unfilled(db_, other);
  ChainStore{db_}.take_instead(trial, other);
}

/// A new trial of the same settings, as they are today.
TrialId SweepStore::copy_of(const TrialRecord& trial, const RenewedTrial& today,
                            std::optional<std::int64_t> seed) {
  db_.prepared(R"sql(
      INSERT INTO trial (id, config_hash, result_version, due_version, data_fingerprint, reusable, config, seed, data, command_json,
                         gpus, max_retries, time_limit_s, stall_limit_s, where_json, retry_on, log_limit_bytes, nan_fails, pack, split, state)
      SELECT (SELECT last_trial + 1 FROM store WHERE last_trial >= COALESCE((SELECT MAX(id) FROM trial), 0)),
             :config_hash, :version, :version, data_fingerprint, :reusable, :config, COALESCE(:seed, seed), data, command_json, gpus, max_retries,
             time_limit_s, stall_limit_s, where_json, retry_on, log_limit_bytes, nan_fails, pack, split, 'queued' FROM trial WHERE id = :trial)sql")
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
                          const WithSeed& with_seed, double turn) {
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
  claim(sweep, first->position, seed_index, first->seed, model, next, now, turn);
}

void SweepStore::claim_like(SweepId sweep, int row, int seed_index, std::int64_t seed, TrialId like,
                            const RenewedTrial& next, Time now) {
  claim(sweep, row, seed_index, seed, TrialStore{db_}.get(like), next, now, 0);
}

void SweepStore::claim(SweepId sweep, int row, int seed_index, std::int64_t seed, const TrialRecord& model,
                       const RenewedTrial& next, Time now, double turn) {
  const bool claimed = db_.prepared(
                              "SELECT 1 FROM sweep_trial WHERE sweep_id = :sweep AND row = :row AND "
                              "seed_index = :seed_index")
                           .bind(":sweep", sweep)
                           .bind(":row", row)
                           .bind(":seed_index", seed_index)
                           .one([](const Statement&) { return true; })
                           .has_value();
  if (claimed) return;
  const auto same = model.reusable
                        ? TrialStore{db_}.find_same(next.config_hash, next.result_version, model.data)
                        : std::nullopt;
  const TrialId trial = same ? same->id : copy_of(model, next, seed);
  if (same) queue_again(trial, {.held = false});
  db_.prepared(
         "INSERT INTO sweep_trial (sweep_id, row, seed_index, seed, trial_id, turn) VALUES (:sweep, :row, "
         ":seed_index, :seed, :trial, :turn)")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .bind(":seed_index", seed_index)
      .bind(":seed", seed)
      .bind(":trial", trial)
      .bind(":turn", turn)
      .run();
  if (!same) return;
  note_unfilled(db_, trial);
  BreakerStore{db_}.want(sweep, now);
}

/// Those whose weights a trial takes run again first, where the trainer was corrected since.
void SweepStore::run_sources_again(SweepId sweep, TrialId trial, const Renew& renewed) {
  for (const ChainStore::Link& link : ChainStore{db_}.links(trial))
    if (const TrialRecord source = TrialStore{db_}.get(link.source); source.before_mend())
      run_again(sweep, source, renewed, {.ended = false, .held = false, .before_mend = true});
}

/// A trial that has not completed, and whose sources are from before a correction: takes those of today.
bool SweepStore::renew_open(SweepId sweep, TrialId id, const Renew& renewed) {
  const TrialRecord trial = TrialStore{db_}.get(id);
  const ChainStore chains{db_};
  const bool is_idle = trial.state == TrialState::kQueued || trial.state == TrialState::kHeld ||
                       trial.state == TrialState::kFailed || trial.state == TrialState::kCancelled;
  if (!is_idle || std::ranges::none_of(chains.links(id), [&](const ChainStore::Link& link) {
        return TrialStore{db_}.get(link.source).before_mend();
      }))
    return false;
  run_sources_again(sweep, id, renewed);
  DueVersions{db_}.renew(trial, chains.with_newest_sources(id, renewed(trial)));
  if (TrialStore{db_}.get(id).replaced_by) return true;  // another of today's identity has its place
  ChainStore{db_}.link_to_newest(id, id);
  queue_again(id, {});
  return true;
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
  if (first.command_json == kImportedCommand && first.state == TrialState::kCompleted) {
    if (!which.completed) return false;  // there is nothing here that could measure more
    throw Error{Code::kFailedPrecondition,
                fmt::format("trial {} was {}: there is nothing here to run it with", first.id, first.reason)};
  }
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
    RenewedTrial today{trial.config, trial.identity.config_hash, trial.identity.result_version};
    if (trial.before_mend()) {
      if (next == 0) run_sources_again(sweep, trial.id, renewed);
      today = ChainStore{db_}.with_newest_sources(trial.id, renewed(trial));
    }
    if (next == 0 && trial.before_mend() && trial.reusable)
      if (const auto same = TrialStore{db_}.find_same(today.config_hash, today.result_version, trial.data))
        next = same->id;
    if (next == 0) {
      // of trials with one identity only the newest may be shared
      db_.prepared("UPDATE trial SET reusable = 0 WHERE id = :trial").bind(":trial", trial.id).run();
      next = copy_of(trial, today);
      if (trial.before_mend()) ChainStore{db_}.link_to_newest(next, trial.id);
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
