// SPDX-License-Identifier: Apache-2.0
#include "storage/breaker_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/utf8.h"

namespace abl::storage {
namespace {

constexpr int kHeldAtOnce = 2000;  // trials, in one transaction
constexpr std::size_t kLongestReason = 300;

/// Of `r`, a row of the sweep: whether it is of :factor and :level.
constexpr const char* kOfLevel =
    R"sql((:factor = '' AND (:level = '' OR r.id = :level) OR :factor <> '' AND EXISTS (
        SELECT 1 FROM json_each(r.set_json) e WHERE e.key = :factor AND e.value = :level)))sql";

/// A statement about the claims `st` of a level from `:row` and `:seed` on, for each kind of level the one
/// that reads no more than it has: of a factor all rows of the sweep, which say what they set.
class OfClaims {
 public:
  /// `sql`: with {0} for FROM, {1} for WHERE and {2} for the row, by which they are in order.
  explicit OfClaims(fmt::format_string<const char*&, const char*&, const char*&> sql) {
    const std::array<std::array<const char*, 3>, 3> kinds{
        {{"sweep_trial st",
          "st.sweep_id = :sweep AND :factor = '' AND :level = '' AND (st.row, st.seed_index) >= (:row, "
          ":seed)",
          "st.row"},
         {"sweep_trial st",
          "st.sweep_id = :sweep AND :factor = '' AND :row >= 0 AND st.seed_index >= :seed AND "
          "st.row = (SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :level)",
          "st.row"},
         // `+`: otherwise SQLite takes the range of the rows for that of the claims, and reads all of those
         // for each row
         {"sweep_row r CROSS JOIN sweep_trial st ON st.sweep_id = r.sweep_id AND st.row = +r.position",
          "r.sweep_id = :sweep AND r.position >= :row AND (r.position > :row OR st.seed_index >= :seed) AND "
          "EXISTS (SELECT 1 FROM json_each(r.set_json) e WHERE e.key = :factor AND e.value = :level)",
          "r.position"}}};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      auto [from, where, row] = kinds[i];
      sql_[i] = fmt::format(sql, from, where, row);
    }
  }
  /// With all but its own values bound.
  Statement& of(Database& db, const SweepLevel& level, HoldFrom from = {}) const {
    const std::size_t kind = !level.factor.empty() ? 2 : !level.level.empty() ? 1 : 0;
    return db.prepared(sql_[kind].c_str())
        .bind(":sweep", level.sweep)
        .bind(":factor", level.factor)
        .bind(":level", level.level)
        .bind(":row", from.row)
        .bind(":seed", from.seed_index);
  }

 private:
  std::array<std::string, 3> sql_;
};

/// What a row shares with others.
std::vector<SweepLevel> levels_of(Database& db, SweepId sweep, std::int64_t row) {
  std::vector<SweepLevel> levels;
  db.prepared("SELECT id, set_json FROM sweep_row WHERE sweep_id = :sweep AND position = :row")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .one([&](const Statement& line) {
        const auto set = nlohmann::json::parse(line.text(1));
        for (const auto& [key, value] : set.items())
          if (value.is_string()) levels.push_back({sweep, key, value.get<std::string>()});
        levels.push_back({sweep, "", line.text(0)});
        return true;
      });
  return levels;
}

Statement& at(Statement& statement, const SweepLevel& level) {
  return statement.bind(":sweep", level.sweep).bind(":factor", level.factor).bind(":level", level.level);
}

/// Why one of these levels is held, or empty.
std::string why_held(Database& db, const std::vector<SweepLevel>& levels) {
  for (const SweepLevel& level : levels) {
    auto why = at(db.prepared("SELECT held FROM sweep_level WHERE sweep_id = :sweep AND factor = :factor AND "
                              "level = :level AND held <> ''"),
                  level)
                   .one([](const Statement& row) { return row.text(0); });
    if (why) return *std::move(why);
  }
  return {};
}

/// False where it is not queued.
bool hold_queued(Database& db, TrialId trial, const std::string& why, Time now) {
  db.prepared(
        R"sql(UPDATE trial SET state = 'held', reason = :why, waiting = '', not_before_ms = 0, finished_ms = :now
              WHERE id = :trial AND state = 'queued')sql")
      .bind(":why", why)
      .bind(":now", now)
      .bind(":trial", trial)
      .run();
  return db.changes() > 0;
}

}  // namespace

void BreakerStore::add_levels(SweepId sweep, const std::vector<NewLevel>& levels) {
  for (const NewLevel& level : levels) {
    if (level.trials < kLeastTrials) continue;
    at(db_.prepared(
           "INSERT INTO sweep_level (sweep_id, factor, level, trials, completed) VALUES (:sweep, :factor, "
           ":level, :trials, :completed) ON CONFLICT DO UPDATE SET trials = excluded.trials, "
           "completed = MAX(completed, excluded.completed)"),
       {sweep, level.factor, level.level})
        .bind(":trials", level.trials)
        .bind(":completed", level.completed)
        .run();
  }
  db_.prepared(
         "UPDATE sweep SET open_levels = (SELECT COUNT(*) FROM sweep_level WHERE sweep_id = :sweep AND "
         "completed = 0) WHERE id = :sweep")
      .bind(":sweep", sweep)
      .run();
}

void BreakerStore::completed(TrialId trial, Time now) {
  struct Claim {
    SweepId sweep = 0;
    std::int64_t row = 0, open_levels = 0;
    std::string held;
  };
  const auto claims =
      db_.prepared(R"sql(
      SELECT st.sweep_id, st.row, s.open_levels, s.held FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
      WHERE st.trial_id = :trial AND (s.open_levels > 0 OR s.canary OR s.held <> ''))sql")
          .bind(":trial", trial)
          .all([](const Statement& row) {
            return Claim{static_cast<SweepId>(row.integer(0)), row.integer(1), row.integer(2), row.text(3)};
          });
  for (const Claim& claim : claims) {
    db_.prepared("UPDATE sweep SET canary = 0, held = '' WHERE id = :sweep AND (canary OR held <> '')")
        .bind(":sweep", claim.sweep)
        .run();
    if (!claim.held.empty()) let_go(claim.sweep, claim.held, now);
    if (claim.open_levels == 0) continue;
    std::int64_t closed = 0;
    for (const SweepLevel& level : levels_of(db_, claim.sweep, claim.row)) {
      const auto held =
          at(db_.prepared("SELECT held FROM sweep_level WHERE sweep_id = :sweep AND factor = :factor AND "
                          "level = :level AND NOT completed"),
             level)
              .one([](const Statement& row) { return row.text(0); });
      if (!held) continue;
      ++closed;
      at(db_.prepared("UPDATE sweep_level SET completed = 1, held = '' WHERE sweep_id = :sweep AND factor = "
                      ":factor AND "
                      "level = :level"),
         level)
          .run();
      if (!held->empty()) let_go(claim.sweep, *held, now);
    }
    if (closed > 0)
      db_.prepared("UPDATE sweep SET open_levels = open_levels - :closed WHERE id = :sweep")
          .bind(":closed", closed)
          .bind(":sweep", claim.sweep)
          .run();
  }
}

/// What was held for a reason that holds no longer goes back to the queue, but for what is held for another.
void BreakerStore::let_go(SweepId sweep, const std::string& reason, Time now) {
  const auto trials = db_.prepared(R"sql(
      UPDATE trial SET state = 'queued', reason = '', finished_ms = NULL
      WHERE state = 'held' AND reason = :reason
        AND id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND withdrawn = 0)
      RETURNING id)sql")
                          .bind(":reason", reason)
                          .bind(":sweep", sweep)
                          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId trial : trials) hold_again(trial, now);
}

void BreakerStore::want(SweepId sweep, Time now) {
  const auto trials = db_.prepared(R"sql(
      UPDATE trial SET state = 'queued', reason = '', finished_ms = NULL
      WHERE state = 'held' AND id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND withdrawn = 0)
        AND EXISTS (SELECT 1 FROM sweep_trial o JOIN sweep s ON s.id = o.sweep_id
                    WHERE o.trial_id = trial.id AND o.sweep_id <> :sweep AND o.withdrawn = 0
                      AND (s.held = trial.reason OR EXISTS (
                        SELECT 1 FROM sweep_level l INDEXED BY sweep_level_held
                        WHERE l.sweep_id = s.id AND l.held <> '' AND l.held = trial.reason)))
      RETURNING id)sql")
                          .bind(":sweep", sweep)
                          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId trial : trials) hold_again(trial, now);
}

void BreakerStore::give_up(SweepId sweep, Time now) {
  const auto trials = db_.prepared(R"sql(
      SELECT DISTINCT t.id FROM sweep_trial st CROSS JOIN trial t ON t.id = st.trial_id AND t.state = 'queued'
      WHERE st.sweep_id = :sweep
        AND (SELECT 1 FROM sweep WHERE held <> '' UNION ALL SELECT 1 FROM sweep_level INDEXED BY sweep_level_held WHERE held <> '')
        AND EXISTS (SELECT 1 FROM sweep_trial o WHERE o.trial_id = t.id AND o.sweep_id <> :sweep AND o.withdrawn = 0))sql")
                          .bind(":sweep", sweep)
                          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId trial : trials) hold_again(trial, now);
}

void BreakerStore::got_through(TrialId trial) {
  db_.prepared(
         R"sql(UPDATE sweep SET canary = 0 WHERE canary AND id IN (SELECT sweep_id FROM sweep_trial WHERE trial_id = :trial))sql")
      .bind(":trial", trial)
      .run();
}

void BreakerStore::got_through_before(Time since) {
  db_.prepared(R"sql(UPDATE sweep SET canary = 0 WHERE canary AND id IN (
                       SELECT st.sweep_id FROM run INDEXED BY run_under_way JOIN sweep_trial st ON st.trial_id = run.trial_id
                       WHERE run.state IN ('leased', 'running') AND COALESCE(run.started_ms, run.leased_ms) <= :since))sql")
      .bind(":since", since)
      .run();
}

std::vector<FailureCounts> BreakerStore::failed(TrialId trial, const std::string& worker) {
  std::vector<FailureCounts> counts;
  struct Claim {
    SweepId sweep = 0;
    std::int64_t row = 0;
  };
  const auto claims = db_.prepared(R"sql(
      SELECT st.sweep_id, MIN(st.row) FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
      WHERE st.trial_id = :trial AND st.withdrawn = 0 AND s.breaker GROUP BY st.sweep_id)sql")
                          .bind(":trial", trial)
                          .all([](const Statement& row) {
                            return Claim{static_cast<SweepId>(row.integer(0)), row.integer(1)};
                          });
  for (const Claim& claim : claims) {
    auto levels = levels_of(db_, claim.sweep, claim.row);
    levels.insert(levels.begin(), {.sweep = claim.sweep});  // which is counted first and judged last
    std::vector<FailureCounts> here;
    for (SweepLevel& level : levels) {
      const bool whole = level.factor.empty() && level.level.empty();
      if (whole)
        db_.prepared(R"sql(UPDATE sweep SET failures = failures + 1,
                                  failed_on = CASE WHEN failed_on IN ('', :worker) THEN :worker ELSE '*' END WHERE id = :sweep)sql")
            .bind(":worker", worker)
            .bind(":sweep", claim.sweep)
            .run();
      else
        at(db_.prepared(R"sql(UPDATE sweep_level SET failures = failures + 1,
                                     failed_on = CASE WHEN failed_on IN ('', :worker) THEN :worker ELSE '*' END
                              WHERE sweep_id = :sweep AND factor = :factor AND level = :level)sql"),
           level)
            .bind(":worker", worker)
            .run();
      auto& counted = whole ? db_.prepared(R"sql(
          SELECT s.failures, s.failed_on = '*', n.completed > 0, n.completed > 0, s.canary, s.held <> '', s.name, s.failures
          FROM sweep s JOIN sweep_count n ON n.sweep_id = s.id WHERE s.id = :sweep)sql")
                                  .bind(":sweep", claim.sweep)
                            : at(db_.prepared(R"sql(
          SELECT l.failures, l.failed_on = '*', l.completed, n.completed > 0, s.canary, l.held <> '', s.name, s.failures
          FROM sweep_level l JOIN sweep s ON s.id = l.sweep_id JOIN sweep_count n ON n.sweep_id = s.id
          WHERE l.sweep_id = :sweep AND l.factor = :factor AND l.level = :level)sql"),
                                 level);
      auto counts_here = counted.one([&](const Statement& row) {
        return FailureCounts{.of = level,
                             .sweep = row.text(6),
                             .failures = static_cast<std::uint32_t>(row.integer(0)),
                             .sweep_failures = static_cast<std::uint32_t>(row.integer(7)),
                             .several_workers = row.integer(1) != 0,
                             .completed = row.integer(2) != 0,
                             .sweep_completed = row.integer(3) != 0,
                             .canary = row.integer(4) != 0,
                             .held = row.integer(5) != 0};
      });
      if (counts_here) here.push_back(*std::move(counts_here));
    }
    // what is held for one thing that they share needs no other reason
    if (std::ranges::any_of(here, &FailureCounts::held)) {  // and says nothing more of the others
      db_.prepared("UPDATE sweep SET failures = MAX(failures - 1, 0) WHERE id = :sweep")
          .bind(":sweep", claim.sweep)
          .run();
      continue;
    }
    std::ranges::rotate(here, here.begin() + 1);
    std::ranges::move(here, std::back_inserter(counts));
  }
  return counts;
}

/// Whether some of it is queued or leased.
bool BreakerStore::is_left(const SweepLevel& level) const {
  const bool whole = level.factor.empty() && level.level.empty();
  const auto may_be = at(db_.prepared(R"sql(
      SELECT n.queued + n.leased > 0 AND COALESCE(l.failures < l.trials, 1) FROM sweep_count n
      LEFT JOIN sweep_level l ON l.sweep_id = :sweep AND l.factor = :factor AND l.level = :level
      WHERE n.sweep_id = :sweep)sql"),
                         level)
                          .one([](const Statement& row) { return row.integer(0) != 0; });
  if (whole || !may_be.value_or(false)) return may_be.value_or(false);
  static const OfClaims any{R"sql(
      SELECT 1 FROM {0} CROSS JOIN trial t ON t.id = st.trial_id AND t.state IN ('queued', 'leased')
      WHERE {1} AND st.withdrawn = 0 LIMIT 1)sql"};
  return any.of(db_, level).one([](const Statement&) { return true; }).has_value();
}

std::string BreakerStore::begin_hold(const SweepLevel& level, const std::string& what,
                                     std::uint32_t failures) {
  const bool whole = level.factor.empty() && level.level.empty();
  const bool left = is_left(level);
  if (!whole)  // they say nothing more of the others
    db_.prepared("UPDATE sweep SET failures = MAX(failures - :failures, 0) WHERE id = :sweep")
        .bind(":failures", failures)
        .bind(":sweep", level.sweep)
        .run();
  if (!left) {
    if (!whole)
      at(db_.prepared("UPDATE sweep_level SET failures = 0, failed_on = '' WHERE sweep_id = :sweep AND "
                      "factor = :factor AND level = :level"),
         level)
          .run();
    return {};
  }
  static const OfClaims most_common{R"sql(
      SELECT t.reason, COUNT(*) AS trials FROM {0} CROSS JOIN trial t ON t.id = st.trial_id
      WHERE {1} AND st.withdrawn = 0 AND t.state = 'failed'
      GROUP BY t.reason ORDER BY trials DESC, MAX(t.id) DESC LIMIT 1)sql"};
  auto found = most_common.of(db_, level).one([](const Statement& row) {
    return std::pair{row.text(0), row.integer(1)};
  });
  auto [reason, trials] = found.value_or(std::pair{std::string{}, std::int64_t{failures}});
  if (reason.size() > kLongestReason) reason = valid_utf8(reason.substr(0, kLongestReason)) + " …";
  const std::string why =
      fmt::format("{} fail: {} ({} of {})", what, reason.empty() ? "no reason given" : reason, trials,
                  std::max<std::int64_t>(trials, failures));
  // whoever retried some of them has seen them fail again
  const char* anew =
      level.factor.empty() && !whole
          ? "UPDATE sweep_row SET released = 0 WHERE sweep_id = :sweep AND id = :row AND released"
          : "UPDATE sweep_row SET released = 0 WHERE sweep_id = :sweep AND released AND :row = :row";
  db_.prepared(anew).bind(":sweep", level.sweep).bind(":row", level.level).run();
  if (whole)
    db_.prepared("UPDATE sweep SET held = :why WHERE id = :sweep")
        .bind(":why", why)
        .bind(":sweep", level.sweep)
        .run();
  else
    at(db_.prepared("UPDATE sweep_level SET held = :why WHERE sweep_id = :sweep AND factor = :factor AND "
                    "level = :level"),
       level)
        .bind(":why", why)
        .run();
  return why;
}

std::optional<HoldFrom> BreakerStore::hold(const SweepLevel& level, HoldFrom from, Time now) {
  const bool all = level.factor.empty() && level.level.empty();
  const auto why = all ? db_.prepared("SELECT held FROM sweep WHERE id = :sweep")
                             .bind(":sweep", level.sweep)
                             .one([](const Statement& line) { return line.text(0); })
                       : at(db_.prepared("SELECT held FROM sweep_level WHERE sweep_id = :sweep AND factor = "
                                         ":factor AND level = :level"),
                            level)
                             .one([](const Statement& line) { return line.text(0); });
  if (!why || why->empty()) return std::nullopt;  // let go meanwhile
  static const OfClaims queued{R"sql(
      SELECT st.trial_id, st.row, st.seed_index,
             EXISTS (SELECT 1 FROM sweep_trial o JOIN sweep s ON s.id = o.sweep_id
                     WHERE o.trial_id = st.trial_id AND o.sweep_id <> :sweep AND o.withdrawn = 0 AND s.state = 'active')
      FROM {0} CROSS JOIN trial t ON t.id = st.trial_id AND t.state = 'queued'
      WHERE {1} AND st.withdrawn = 0
        AND (SELECT queued > 0 FROM sweep_count WHERE sweep_id = :sweep)
        AND NOT (SELECT released FROM sweep_row WHERE sweep_id = :sweep AND position = st.row)
      ORDER BY {2}, st.seed_index LIMIT :most)sql"};
  struct Queued {
    TrialId trial = 0;
    HoldFrom at;
    bool shared = false;
  };
  const auto trials = queued.of(db_, level, from).bind(":most", kHeldAtOnce).all([](const Statement& line) {
    return Queued{static_cast<TrialId>(line.integer(0)),
                  {static_cast<std::uint32_t>(line.integer(1)), static_cast<std::uint32_t>(line.integer(2))},
                  line.integer(3) != 0};
  });
  for (const Queued& trial : trials)
    if (trial.shared)
      hold_again(trial.trial, now);
    else
      hold_queued(db_, trial.trial, *why, now);
  if (trials.size() < kHeldAtOnce) return std::nullopt;
  return HoldFrom{trials.back().at.row, trials.back().at.seed_index + 1};
}

std::vector<RunId> BreakerStore::leased(const SweepLevel& level) const {
  static const std::string runs = fmt::format(R"sql(
      SELECT run.id FROM run INDEXED BY run_under_way CROSS JOIN sweep_trial st ON st.trial_id = run.trial_id AND st.sweep_id = :sweep
      JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      WHERE run.state IN ('leased', 'running') AND run.state = 'leased' AND {})sql",
                                              kOfLevel);
  return at(db_.prepared(runs.c_str()), level).all([](const Statement& row) {
    return static_cast<RunId>(row.integer(0));
  });
}

bool BreakerStore::hold_again(TrialId trial, Time now) {
  struct Claim {
    SweepId sweep = 0;
    std::int64_t row = 0;
    bool active = false, of_levels = false;
    std::string why;
    bool released = false;
  };
  auto claims = db_.prepared(R"sql(
      SELECT st.sweep_id, st.row, s.state = 'active',
             EXISTS (SELECT 1 FROM sweep_level l INDEXED BY sweep_level_held WHERE l.sweep_id = s.id AND l.held <> ''), s.held,
             (SELECT released FROM sweep_row WHERE sweep_id = st.sweep_id AND position = st.row)
      FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id WHERE st.trial_id = :trial AND st.withdrawn = 0)sql")
                    .bind(":trial", trial)
                    .all([](const Statement& row) {
                      return Claim{static_cast<SweepId>(row.integer(0)),
                                   row.integer(1),
                                   row.integer(2) != 0,
                                   row.integer(3) != 0,
                                   row.text(4),
                                   row.integer(5) != 0};
                    });
  std::set<SweepId> wanting, holding;
  std::string reason;
  for (Claim& claim : claims) {
    if (claim.active) wanting.insert(claim.sweep);
    if (claim.released) continue;
    if (claim.why.empty() && claim.of_levels)
      claim.why = why_held(db_, levels_of(db_, claim.sweep, claim.row));
    if (claim.why.empty()) continue;
    holding.insert(claim.sweep);
    if (reason.empty()) reason = claim.why;
  }
  if (holding.empty() || !std::ranges::includes(holding, wanting)) return false;
  return hold_queued(db_, trial, reason, now);
}

std::vector<SweepLevel> BreakerStore::held() const {
  return db_
      .prepared(R"sql(SELECT id, '', '' FROM sweep WHERE held <> '' UNION ALL
                      SELECT sweep_id, factor, level FROM sweep_level INDEXED BY sweep_level_held WHERE held <> '')sql")
      .all([](const Statement& row) {
        return SweepLevel{static_cast<SweepId>(row.integer(0)), row.text(1), row.text(2)};
      });
}

void BreakerStore::reset(SweepId sweep) {
  db_.prepared("UPDATE sweep_row SET released = 0 WHERE sweep_id = :sweep AND released")
      .bind(":sweep", sweep)
      .run();
  db_.prepared("UPDATE sweep SET failures = 0, failed_on = '', held = '' WHERE id = :sweep")
      .bind(":sweep", sweep)
      .run();
  db_.prepared(
         "UPDATE sweep_level SET failures = 0, failed_on = '', held = '' WHERE sweep_id = :sweep AND "
         "(failures > 0 OR "
         "held <> '')")
      .bind(":sweep", sweep)
      .run();
}

void BreakerStore::reset(SweepId sweep, const std::string& row) {
  const auto position = db_.prepared("SELECT position FROM sweep_row WHERE sweep_id = :sweep AND id = :row")
                            .bind(":sweep", sweep)
                            .bind(":row", row)
                            .one([](const Statement& found) { return found.integer(0); });
  if (!position) return;
  db_.prepared("UPDATE sweep_row SET released = 1 WHERE sweep_id = :sweep AND id = :row")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .run();
  db_.prepared("UPDATE sweep SET failures = 0, failed_on = '' WHERE id = :sweep").bind(":sweep", sweep).run();
  for (const SweepLevel& level : levels_of(db_, sweep, *position))
    at(db_.prepared("UPDATE sweep_level SET failures = 0, failed_on = '', held = CASE factor WHEN '' THEN '' "
                    "ELSE held END WHERE sweep_id = :sweep AND factor = :factor AND level = :level"),
       level)
        .run();
}

}  // namespace abl::storage
