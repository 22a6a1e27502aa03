// SPDX-License-Identifier: Apache-2.0
// Which trials a sweep claims, and how they stand.
#include <algorithm>
#include <limits>
#include <utility>

#include "storage/metric_store.h"
#include "storage/sweep_store.h"

namespace abl::storage {
namespace {

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

}  // namespace abl::storage
