// SPDX-License-Identifier: Apache-2.0
// How a sweep gets another content, and what is kept of the one before.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/sha256.h"
#include "storage/breaker_store.h"
#include "storage/queue_store.h"
#include "storage/sweep_store.h"

namespace abl::storage {
namespace {

/// Columns in the order of the queries of SweepStore::revisions and text_of.
SweepRevision revision_of(const Statement& row) {
  return {.revision = static_cast<std::uint32_t>(row.integer(0)),
          .time = row.time(1),
          .author = row.text(2),
          .file = row.text(3),
          .text_sha256 = sha256_hex(row.text(4)),
          .changes_json = row.text(5),
          .new_trials = static_cast<std::uint32_t>(row.integer(6)),
          .former_trials = static_cast<std::uint32_t>(row.integer(7))};
}

void insert_revision(Database& db, SweepId sweep, std::uint32_t revision, Time time,
                     const std::string& author, const std::string& changes, const Extended& result) {
  db.prepared(R"sql(
      INSERT INTO sweep_revision (sweep_id, revision, time_ms, author, file, text, canonical, changes, new_trials, former_trials)
      SELECT id, :revision, :time, :author, file, text, canonical, :changes, :new, :former FROM sweep WHERE id = :sweep)sql")
      .bind(":sweep", sweep)
      .bind(":revision", revision)
      .bind(":time", time)
      .bind(":author", author)
      .bind(":changes", changes)
      .bind(":new", result.new_trials)
      .bind(":former", result.former_trials)
      .run();
}

/// Levels that no row has any more say nothing.
void forget_levels(Database& db, SweepId sweep, const std::vector<NewRow>& rows) {
  std::set<std::pair<std::string, std::string>> there;
  for (const NewRow& row : rows) {
    there.emplace("", row.id);
    for (const auto& level : row.levels) there.insert(level);
  }
  const auto stored = db.prepared("SELECT factor, level FROM sweep_level WHERE sweep_id = :sweep")
                          .bind(":sweep", sweep)
                          .all([](const Statement& row) {
                            return std::pair{row.text(0), row.text(1)};
                          });
  for (const auto& [factor, level] : stored)
    if (!there.contains({factor, level}))
      db.prepared("DELETE FROM sweep_level WHERE sweep_id = :sweep AND factor = :factor AND level = :level")
          .bind(":sweep", sweep)
          .bind(":factor", factor)
          .bind(":level", level)
          .run();
}

}  // namespace

Extended SweepStore::extend(SweepId sweep, const NewSweep& content, const std::vector<NewTrial>& trials,
                            const Extension& extension, Time now) {
  Transaction transaction{db_, Transaction::kSavepoint};
  struct Before {
    std::uint32_t revision = 1;
    Time created{};
    std::string owner;
    bool breaker = false;
  };
  const auto before = db_.prepared("SELECT revision, created_ms, owner, breaker FROM sweep WHERE id = :sweep")
                          .bind(":sweep", sweep)
                          .one([](const Statement& row) {
                            return Before{static_cast<std::uint32_t>(row.integer(0)), row.time(1),
                                          row.text(2), row.integer(3) != 0};
                          })
                          .value();
  if (before.revision == 1) insert_revision(db_, sweep, 1, before.created, before.owner, "[]", {});
  const auto released = db_.prepared("SELECT id FROM sweep_row WHERE sweep_id = :sweep AND released")
                            .bind(":sweep", sweep)
                            .all([](const Statement& row) { return row.text(0); });
  Claims claims;
  db_.prepared(R"sql(
      SELECT r.id, r.label, st.seed, st.trial_id, st.withdrawn, t.state = 'completed' FROM sweep_trial st
      JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row JOIN trial t ON t.id = st.trial_id
      WHERE st.sweep_id = :sweep)sql")
      .bind(":sweep", sweep)
      .all([&](const Statement& row) {
        claims[{row.text(0), row.integer(2)}] = {.label = row.text(1),
                                                 .trial = static_cast<TrialId>(row.integer(3)),
                                                 .withdrawn = row.integer(4) != 0,
                                                 .completed = row.integer(5) != 0,
                                                 .replaced = extension.replaced.contains(row.text(0))};
        return true;
      });
  for (const char* sql :
       {"DELETE FROM sweep_trial WHERE sweep_id = :sweep", "DELETE FROM sweep_paper WHERE sweep_id = :sweep",
        "DELETE FROM sweep_row WHERE sweep_id = :sweep", "DELETE FROM sweep_column WHERE sweep_id = :sweep",
        "DELETE FROM sweep_seed WHERE sweep_id = :sweep"})
    db_.prepared(sql).bind(":sweep", sweep).run();
  db_.prepared(
         R"sql(UPDATE sweep SET file = :file, text = :text, canonical = :canonical, canonical_hash = :hash,
                     baseline = :baseline, paper_heading = :heading, seeds_rule = :seeds_rule, probes = :probes, revision = revision + 1,
                     state = state WHERE id = :sweep)sql")
      .bind(":file", content.file)
      .bind(":text", content.text)
      .bind(":canonical", content.canonical)
      .bind(":hash", content.canonical_hash)
      .bind(":baseline", content.baseline)
      .bind(":heading", content.paper_heading)
      .bind(":seeds_rule", content.seeds_rule)
      .bind(":probes", content.probes)
      .bind(":sweep", sweep)
      .run();
  NewSweep grown = content;
  grown.breaker = before.breaker;  // which is of its standing
  const Claims all = claims;
  Extended result;
  static_cast<Submitted&>(result) = fill(sweep, grown, trials, &claims, now);
  for (const std::string& row : released)
    db_.prepared("UPDATE sweep_row SET released = 1 WHERE sweep_id = :sweep AND id = :row")
        .bind(":sweep", sweep)
        .bind(":row", row)
        .run();
  forget_levels(db_, sweep, content.rows);
  for (const auto& [place, claim] : claims) {  // those that are left
    const auto replaced = extension.replaced.find(place.first);
    const bool is = replaced != extension.replaced.end();
    db_.prepared(R"sql(
        INSERT INTO sweep_former (sweep_id, revision, row, label, seed, trial_id, version, why)
        VALUES (:sweep, :revision, :row, :label, :seed, :trial, :version, :why))sql")
        .bind(":sweep", sweep)
        .bind(":revision", before.revision + 1)
        .bind(":row", place.first)
        .bind(":label", claim.label)
        .bind(":seed", place.second)
        .bind(":trial", claim.trial)
        .bind(":version", is ? replaced->second.version : std::nullopt)
        .bind(":why", is ? replaced->second.why : "the row is not trained any more")
        .run();
  }
  // what it has back is no former one
  db_.prepared(R"sql(DELETE FROM sweep_former WHERE sweep_id = :sweep AND EXISTS (
                     SELECT 1 FROM sweep_trial st WHERE st.trial_id = sweep_former.trial_id AND st.sweep_id = :sweep))sql")
      .bind(":sweep", sweep)
      .run();
  result.former_trials = static_cast<std::uint32_t>(
      db_.prepared("SELECT COUNT(*) FROM sweep_former WHERE sweep_id = :sweep AND revision = :revision")
          .bind(":sweep", sweep)
          .bind(":revision", before.revision + 1)
          .one([](const Statement& row) { return row.integer(0); })
          .value_or(0));
  for (const auto& [place, claim] : claims) {
    const auto replaced = extension.replaced.find(place.first);
    if (replaced != extension.replaced.end() && replaced->second.longer) {
      db_.prepared(R"sql(
          UPDATE trial SET continues = :old WHERE attempt = 0 AND continues IS NULL AND id <> :old AND id = (
            SELECT st.trial_id FROM sweep_row r JOIN sweep_trial st ON st.sweep_id = r.sweep_id AND st.row = r.position
            WHERE r.sweep_id = :sweep AND r.id = :row AND st.seed = :seed)
          AND EXISTS (SELECT 1 FROM run WHERE trial_id = :old))sql")
          .bind(":old", claim.trial)
          .bind(":sweep", sweep)
          .bind(":row", place.first)
          .bind(":seed", place.second)
          .run();
      result.continued_trials += static_cast<std::uint32_t>(db_.changes());
    }
    db_.prepared(
           R"sql(UPDATE trial SET state = 'cancelled', finished_ms = :now WHERE id = :trial AND state IN ('queued', 'held')
                 AND NOT EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = :trial AND withdrawn = 0))sql")
        .bind(":now", now)
        .bind(":trial", claim.trial)
        .run();
    if (const auto run =
            db_.prepared(R"sql(SELECT run_id FROM trial WHERE id = :trial AND state IN ('leased', 'running')
                               AND NOT EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = :trial AND withdrawn = 0))sql")
                .bind(":trial", claim.trial)
                .one([](const Statement& row) { return static_cast<RunId>(row.integer(0)); }))
      result.unwanted.push_back(*run);
  }
  if (extension.resources && !trials.empty()) {  // of what waits, and is of this sweep alone
    const NewTrial& today = trials.front();
    const std::string where = today.where.empty() ? "" : nlohmann::json(today.where).dump();
    for (const auto& [place, claim] : all) {
      db_.prepared(R"sql(
          UPDATE trial SET gpus = :gpus, split = :split, max_retries = :max_retries, retry_on = :retry_on, where_json = :where,
            time_limit_s = :time, stall_limit_s = :stall, log_limit_bytes = :log, nan_fails = :nan,
            pack = CASE WHEN :packs THEN (SELECT r.config_hash FROM sweep_trial st JOIN sweep_row r
              ON r.sweep_id = st.sweep_id AND r.position = st.row WHERE st.sweep_id = :sweep AND st.trial_id = :trial LIMIT 1) ELSE '' END
          WHERE id = :trial AND state IN ('queued', 'held')
            AND EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = :trial AND sweep_id = :sweep)
            AND NOT EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = :trial AND sweep_id <> :sweep))sql")
          .bind(":gpus", today.gpus)
          .bind(":split", today.split.text())
          .bind(":max_retries", today.max_retries)
          .bind(":retry_on", protocol::to_text(today.retry_on))
          .bind(":where", where)
          .bind(":time", std::int64_t{today.time_limit.count()})
          .bind(":stall", std::int64_t{today.stall_limit.count()})
          .bind(":log", static_cast<std::int64_t>(today.log_limit))
          .bind(":nan", today.nan_fails)
          .bind(":packs", !today.pack.empty())
          .bind(":trial", claim.trial)
          .bind(":sweep", sweep)
          .run();
      if (db_.changes() > 0) QueueStore{db_}.set_shape(claim.trial);
    }
  }
  insert_revision(db_, sweep, before.revision + 1, now, extension.author,
                  nlohmann::json(extension.changes).dump(), result);
  transaction.commit();
  return result;
}

std::vector<SweepRevision> SweepStore::revisions(SweepId sweep) const {
  return db_
      .prepared(R"sql(SELECT revision, time_ms, author, file, text, changes, new_trials, former_trials
                      FROM sweep_revision WHERE sweep_id = :sweep ORDER BY revision)sql")
      .bind(":sweep", sweep)
      .all(revision_of);
}

std::optional<RevisionText> SweepStore::text_of(const SweepRecord& sweep, std::uint32_t revision) const {
  if (revision == 0) revision = sweep.revision;
  const auto stored =
      db_.prepared(R"sql(SELECT revision, time_ms, author, file, text, changes, new_trials, former_trials
                         FROM sweep_revision WHERE sweep_id = :sweep AND revision = :revision)sql")
          .bind(":sweep", sweep.id)
          .bind(":revision", revision)
          .one([](const Statement& row) {
            return RevisionText{revision_of(row), row.text(4)};
          });
  if (stored || revision != sweep.revision) return stored;
  std::string own = text(sweep.id);
  return RevisionText{{.revision = revision,
                       .time = sweep.created,
                       .author = sweep.owner,
                       .file = sweep.file,
                       .text_sha256 = sha256_hex(own),
                       .changes_json = "[]"},
                      std::move(own)};
}

std::vector<FormerTrial> SweepStore::former(SweepId sweep, std::uint32_t most) const {
  return db_
      .prepared(R"sql(
      SELECT f.row, f.label, f.seed, f.trial_id, t.state, t.run_id, f.revision, f.why
      FROM sweep_former f JOIN trial t ON t.id = f.trial_id
      WHERE f.sweep_id = :sweep ORDER BY f.revision, f.row, f.seed LIMIT :most)sql")
      .bind(":sweep", sweep)
      .bind(":most", std::int64_t{most})
      .all([](const Statement& row) {
        FormerTrial former{.row = row.text(0),
                           .label = row.text(1),
                           .seed = row.integer(2),
                           .trial = static_cast<TrialId>(row.integer(3)),
                           .state = trial_state(row.text(4)),
                           .revision = static_cast<std::uint32_t>(row.integer(6)),
                           .why = row.text(7)};
        if (!row.is_null(5)) former.run = static_cast<RunId>(row.integer(5));
        return former;
      });
}

std::vector<RowGrowth> SweepStore::growth(SweepId sweep) const {
  return db_
      .prepared(R"sql(SELECT g.row, g.seeds, g.open, g.why FROM sweep_growth g
                      JOIN sweep_row r ON r.sweep_id = g.sweep_id AND r.id = g.row
                      WHERE g.sweep_id = :sweep AND g.why <> '' ORDER BY r.position)sql")
      .bind(":sweep", sweep)
      .all([](const Statement& row) {
        return RowGrowth{.row = row.text(0),
                         .seeds = static_cast<std::uint32_t>(row.integer(1)),
                         .open = row.integer(2) != 0,
                         .why = row.text(3)};
      });
}

void SweepStore::set_growth(SweepId sweep, const RowGrowth& row, Time now) {
  db_.prepared(R"sql(
      INSERT INTO sweep_growth (sweep_id, row, seeds, open, why, time_ms) VALUES (:sweep, :row, :seeds, :open, :why, :now)
      ON CONFLICT DO UPDATE SET seeds = excluded.seeds, open = excluded.open, why = excluded.why, time_ms = excluded.time_ms)sql")
      .bind(":sweep", sweep)
      .bind(":row", row.row)
      .bind(":seeds", row.seeds)
      .bind(":open", row.open)
      .bind(":why", row.why)
      .bind(":now", now)
      .run();
}

void SweepStore::set_budget(SweepId sweep, const Budget& parts) {
  if (parts.gpu_time)
    db_.prepared("UPDATE sweep SET gpu_ms_limit = NULLIF(:limit, 0), spent = '' WHERE id = :sweep")
        .bind(":limit", std::int64_t{parts.gpu_time->count()})
        .bind(":sweep", sweep)
        .run();
  if (parts.until)
    db_.prepared("UPDATE sweep SET until_ms = NULLIF(:until, 0), spent = '' WHERE id = :sweep")
        .bind(":until", *parts.until)
        .bind(":sweep", sweep)
        .run();
}

}  // namespace abl::storage
