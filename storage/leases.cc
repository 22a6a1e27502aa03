// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "storage/trial_store.h"

// Leases: which run has a trial, until when, and what is under way where.
namespace abl::storage {
namespace {

/// 16 hexadecimal digits.
std::string random_token() {
  thread_local std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

}  // namespace

std::optional<Lease> TrialStore::lease(TrialId trial, const std::string& worker, const std::string& host,
                                       Time now, Time expires, const std::vector<std::uint32_t>& slots) {
  Lease lease{.trial = trial, .expires = expires, .token = random_token()};
  db_.prepared(R"sql(
      INSERT INTO run (id, trial_id, attempt, state, worker, host, leased_ms, lease_expires_ms, slots, token)
      SELECT (SELECT last_run + 1 FROM store WHERE last_run >= COALESCE((SELECT MAX(id) FROM run), 0)),
             id, attempt + 1, 'leased', :worker, :host, :now, :expires, :slots, :token FROM trial
      WHERE id = :trial AND state = 'queued'
        AND EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                    WHERE st.trial_id = :trial AND st.withdrawn = 0 AND s.state = 'active' AND s.spent = ''))sql")
      .bind(":trial", trial)
      .bind(":worker", worker)
      .bind(":host", host)
      .bind(":now", now)
      .bind(":expires", expires)
      .bind(":slots", fmt::format("[{}]", fmt::join(slots, ",")))
      .bind(":token", lease.token)
      .run();
  if (db_.changes() == 0) return std::nullopt;
  lease.run = static_cast<RunId>(db_.last_insert_id());
  lease.attempt = db_.prepared("SELECT attempt FROM run WHERE id = :run")
                      .bind(":run", lease.run)
                      .one([](const Statement& row) { return static_cast<int>(row.integer(0)); })
                      .value();
  db_.prepared(
         "UPDATE trial SET state = 'leased', attempt = :attempt, waiting = '', run_id = :run WHERE id = "
         ":trial")
      .bind(":attempt", lease.attempt)
      .bind(":run", lease.run)
      .bind(":trial", trial)
      .run();
  return lease;
}

bool TrialStore::renew(RunId run, Time expires) {
  db_.prepared(
         "UPDATE run SET lease_expires_ms = :expires WHERE id = :run AND state IN ('leased', 'running')")
      .bind(":expires", expires)
      .bind(":run", run)
      .run();
  return db_.changes() > 0;
}

void TrialStore::renew_all(Time expires) {
  db_.prepared("UPDATE run SET lease_expires_ms = :expires WHERE state IN ('leased', 'running')")
      .bind(":expires", expires)
      .run();
}

std::vector<RunId> TrialStore::expired(Time now) const {
  // twice a second: by the index of the few that are under way, never by looking at every run there was
  auto runs = db_.prepared(R"sql(SELECT id FROM run INDEXED BY run_under_way
                                 WHERE state IN ('leased', 'running') AND lease_expires_ms <= :now)sql")
                  .bind(":now", now)
                  .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  std::ranges::sort(runs);
  return runs;
}

void TrialStore::ask_to_stop(const std::vector<RunId>& runs, const std::string& reason) {
  for (const RunId run : runs)
    db_.prepared("UPDATE run SET stop_reason = :reason WHERE id = :run AND state IN ('leased', 'running')")
        .bind(":reason", reason)
        .bind(":run", run)
        .run();
}

void TrialStore::note_packed(const std::vector<RunId>& runs, std::uint32_t others) {
  for (const RunId run : runs)
    db_.prepared("UPDATE run SET packed_with = MAX(packed_with, :others) WHERE id = :run")
        .bind(":others", others)
        .bind(":run", run)
        .run();
}

void TrialStore::take_stops_back(SweepId sweep) {
  db_.prepared(
         R"sql(UPDATE run SET stop_reason = '' WHERE state IN ('leased', 'running') AND stop_reason <> ''
                     AND trial_id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND withdrawn = 0))sql")
      .bind(":sweep", sweep)
      .run();
}

bool TrialStore::under_way(RunId run) const {
  return db_
      .prepared(R"sql(SELECT 1 FROM run JOIN trial t ON t.id = run.trial_id AND t.run_id = run.id
                            WHERE run.id = :run AND run.state IN ('leased', 'running'))sql")
      .bind(":run", run)
      .one([](const Statement&) { return true; })
      .has_value();
}

std::uint32_t TrialStore::count_under_way() const {
  return static_cast<std::uint32_t>(
      db_.prepared("SELECT COUNT(*) FROM trial WHERE state IN ('leased', 'running')")
          .one([](const Statement& row) { return row.integer(0); })
          .value());
}

std::vector<RunId> TrialStore::under_way_on(const std::string& worker) const {
  return db_
      .prepared("SELECT id FROM run WHERE state IN ('leased', 'running') AND worker = :worker ORDER BY id")
      .bind(":worker", worker)
      .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
}

std::vector<RunUnderWay> TrialStore::runs_under_way_on(const std::string& worker) const {
  return db_
      .prepared(R"sql(
      SELECT run.id, run.slots, t.command_json <> '', run.stop_reason <> '',
             COALESCE((SELECT MAX(s.priority) FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                       WHERE st.trial_id = t.id AND st.withdrawn = 0), 0)
      FROM run JOIN trial t ON t.id = run.trial_id
      WHERE run.state IN ('leased', 'running') AND run.worker = :worker ORDER BY run.id)sql")
      .bind(":worker", worker)
      .all([](const Statement& row) {
        return RunUnderWay{.id = static_cast<RunId>(row.integer(0)),
                           .slots = nlohmann::json::parse(row.text(1)).get<std::vector<std::uint32_t>>(),
                           .priority = static_cast<int>(row.integer(4)),
                           .command = row.integer(2) != 0,
                           .asked_to_stop = row.integer(3) != 0};
      });
}

std::map<std::uint32_t, std::vector<RunId>> TrialStore::slots_in_use(const std::string& worker) const {
  auto& runs = db_.prepared(R"sql(
      SELECT slot.value, run.id, run.state = 'running' FROM run, json_each(run.slots) slot
      WHERE run.state IN ('leased', 'running') AND run.worker = :worker
      UNION ALL
      SELECT slot.value, run.id, run.state = 'running' FROM run INDEXED BY run_under_way
      CROSS JOIN run_part p ON p.run_id = run.id, json_each(p.slots) slot
      WHERE run.state IN ('leased', 'running') AND p.worker = :worker ORDER BY 2)sql");
  std::map<std::uint32_t, std::vector<RunId>> by_slot;
  for (runs.bind(":worker", worker); runs.step();) {
    auto& slot = by_slot[static_cast<std::uint32_t>(runs.integer(0))];
    if (slot.empty() || runs.integer(2) != 0) slot.push_back(static_cast<RunId>(runs.integer(1)));
  }
  return by_slot;
}

}  // namespace abl::storage
