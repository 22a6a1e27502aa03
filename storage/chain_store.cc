// SPDX-License-Identifier: Apache-2.0
#include "storage/chain_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/sha256.h"
#include "storage/trial_store.h"

namespace abl::storage {

void ChainStore::link(TrialId trial, const std::vector<NewSource>& sources) {
  const auto insert = [&](TrialId source, const std::string& name, std::string_view take) {
    db_.prepared(
           "INSERT OR IGNORE INTO trial_source (trial_id, source_id, name, take) VALUES (:trial, :source, "
           ":name, :take)")
        .bind(":trial", trial)
        .bind(":source", source)
        .bind(":name", name)
        .bind(":take", take)
        .run();
  };
  for (const NewSource& source : sources) {
    const auto there = TrialStore{db_}.find_same(source.config_hash, source.result_version, source.data);
    if (!there)
      throw Error{Code::kInternal, fmt::format("trial {} takes the weights {} of a trial that is not there",
                                               trial, source.name)};
    insert(there->id, source.name, name_of(source.take));
    const auto before = db_.prepared("SELECT source_id FROM trial_source WHERE trial_id = :trial")
                            .bind(":trial", there->id)
                            .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
    for (const TrialId id : before) insert(id, "", "");
  }
}

std::vector<ChainStore::Link> ChainStore::links(TrialId trial) const {
  return db_
      .prepared(
          "SELECT source_id, name, take FROM trial_source WHERE trial_id = :trial AND name <> '' ORDER BY "
          "name")
      .bind(":trial", trial)
      .all([](const Statement& row) {
        return Link{.source = static_cast<TrialId>(row.integer(0)),
                    .name = row.text(1),
                    .take = value_named<protocol::Taken>(row.text(2)).value_or(protocol::Taken::kBest)};
      });
}

namespace {

/// What has taken a trial's place since the trainer was corrected, or itself.
TrialRecord newest_of(Database& db, TrialId trial) {
  TrialRecord newest = TrialStore{db}.get(trial);
  while (newest.before_mend() && newest.replaced_by) newest = TrialStore{db}.get(*newest.replaced_by);
  return newest;
}

}  // namespace

RenewedTrial ChainStore::with_newest_sources(TrialId trial, RenewedTrial today) const {
  for (const Link& link : links(trial)) {
    const TrialRecord source = newest_of(db_, link.source);
    today.result_version = std::max(today.result_version, source.identity.result_version);
    const std::string name = protocol::weights_name(link.take, source.identity.config_hash);
    const auto at = today.config.find('"' + link.name + '"');
    if (name == link.name || at == std::string::npos) continue;
    today.config.replace(at + 1, link.name.size(), name);
    today.config_hash = sha256_hex(today.config);
  }
  return today;
}

void ChainStore::link_to_newest(TrialId trial, TrialId like) {
  std::vector<NewSource> sources;
  for (const Link& link : links(like)) {
    const TrialRecord source = newest_of(db_, link.source);
    sources.push_back({.name = protocol::weights_name(link.take, source.identity.config_hash),
                       .take = link.take,
                       .config_hash = source.identity.config_hash,
                       .data = source.data,
                       .result_version = source.identity.result_version});
  }
  db_.prepared("DELETE FROM trial_source WHERE trial_id = :trial").bind(":trial", trial).run();
  this->link(trial, sources);
}

void ChainStore::copy(TrialId from, TrialId to) {
  db_.prepared(
         "INSERT INTO trial_source (trial_id, source_id, name, take) SELECT :to, source_id, name, take FROM "
         "trial_source WHERE trial_id = :from")
      .bind(":from", from)
      .bind(":to", to)
      .run();
}

void ChainStore::take_instead(TrialId source, TrialId other) {
  const bool same = db_.prepared(R"sql(SELECT 1 FROM trial a CROSS JOIN trial b ON b.id = :other
                                       WHERE a.id = :source AND a.config_hash = b.config_hash AND a.result_version = b.result_version)sql")
                        .bind(":source", source)
                        .bind(":other", other)
                        .one([](const Statement&) { return true; })
                        .has_value();
  if (!same) return;
  const auto trials =
      db_.prepared(R"sql(SELECT ts.trial_id FROM trial_source ts CROSS JOIN trial t ON t.id = ts.trial_id
                         WHERE ts.source_id = :source AND (t.state = 'queued' OR t.state = 'held' OR t.state = 'failed'
                                                           OR t.state = 'cancelled'))sql")
          .bind(":source", source)
          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId trial : trials) {
    db_.prepared(
           "INSERT OR IGNORE INTO trial_source (trial_id, source_id, name, take) SELECT trial_id, :other, "
           "name, "
           "take FROM trial_source WHERE trial_id = :trial AND source_id = :source")
        .bind(":trial", trial)
        .bind(":source", source)
        .bind(":other", other)
        .run();
    db_.prepared("DELETE FROM trial_source WHERE trial_id = :trial AND source_id = :source")
        .bind(":trial", trial)
        .bind(":source", source)
        .run();
    // what it has trained began with the others: it begins anew, and a silent worker does not go on
    db_.prepared("DELETE FROM checkpoint WHERE run_id IN (SELECT id FROM run WHERE trial_id = :trial)")
        .bind(":trial", trial)
        .run();
    db_.prepared("UPDATE run SET silent = 0 WHERE trial_id = :trial AND silent = 1")
        .bind(":trial", trial)
        .run();
    db_.prepared(  // where the other cannot be completed either, it is held for that again
           R"sql(UPDATE trial SET state = 'queued', held_for_source = 0, reason = '', finished_ms = NULL
                 WHERE id = :trial AND state = 'held' AND held_for_source)sql")
        .bind(":trial", trial)
        .run();
  }
}

std::vector<SourceFile> ChainStore::files(TrialId trial) const {
  auto files = db_.prepared(R"sql(
      SELECT ts.name, ts.take, ts.source_id, s.state,
             COALESCE((SELECT 'row ' || r.id || ', seed ' || st.seed
                       FROM sweep_trial mine
                       CROSS JOIN sweep_trial st ON st.trial_id = ts.source_id AND st.sweep_id = mine.sweep_id
                       CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
                       WHERE mine.trial_id = ts.trial_id ORDER BY mine.sweep_id, st.row, st.seed_index LIMIT 1),
                      'trial ' || ts.source_id)
      FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
      WHERE ts.trial_id = :trial AND ts.name <> '' ORDER BY ts.name)sql")
                   .bind(":trial", trial)
                   .all([](const Statement& row) {
                     return SourceFile{
                         .name = row.text(0),
                         .take = value_named<protocol::Taken>(row.text(1)).value_or(protocol::Taken::kBest),
                         .trial = static_cast<TrialId>(row.integer(2)),
                         .state = trial_state(row.text(3)),
                         .checkpoint = {},
                         .what = row.text(4)};
                   });
  for (SourceFile& file : files)
    if (file.state == TrialState::kCompleted) file.checkpoint = checkpoint(file.trial, file.take);
  return files;
}

/// Of the run that completed the trial, or, before it, of those that it went on from: up to the steps that it
/// has of theirs.
CheckpointRecord ChainStore::checkpoint(TrialId source, protocol::Taken take) const {
  struct Part {
    RunId run = 0;
    std::int64_t last_step = std::numeric_limits<std::int64_t>::max();
  };
  const auto part = [](const Statement& row) {
    return Part{static_cast<RunId>(row.integer(0)), row.integer(1)};
  };
  auto at =
      db_.prepared("SELECT run_id, 9223372036854775807 FROM trial WHERE id = :trial AND run_id IS NOT NULL")
          .bind(":trial", source)
          .one(part);
  for (; at;
       at = db_.prepared(
                   "SELECT resumed_from_run, MIN(COALESCE(resumed_from_step, 0), :last) FROM run WHERE id = "
                   ":run AND resumed_from_run IS NOT NULL")
                .bind(":run", at->run)
                .bind(":last", at->last_step)
                .one(part)) {
    auto found = db_.prepared(R"sql(
        SELECT run_id, step, host, CASE :best WHEN 1 THEN best ELSE path END, sha256 FROM checkpoint
        WHERE run_id = :run AND step <= :last AND (:best = 0 OR best <> '') ORDER BY step DESC LIMIT 1)sql")
                     .bind(":best", take == protocol::Taken::kBest)
                     .bind(":run", at->run)
                     .bind(":last", at->last_step)
                     .one([](const Statement& row) {
                       return CheckpointRecord{.run = static_cast<RunId>(row.integer(0)),
                                               .step = static_cast<std::uint32_t>(row.integer(1)),
                                               .host = row.text(2),
                                               .path = row.text(3),
                                               .sha256 = row.text(4)};
                     });
    if (found) return *std::move(found);
  }
  return {};
}

std::vector<TrialId> ChainStore::awaited(TrialId trial) const {
  return db_
      .prepared(
          R"sql(SELECT DISTINCT ts.source_id FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                      WHERE ts.trial_id = :trial AND s.state <> 'completed')sql")
      .bind(":trial", trial)
      .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
}

bool ChainStore::is_chained(TrialId trial) const {
  return db_.prepared("SELECT 1 FROM trial_source WHERE trial_id = :trial")
      .bind(":trial", trial)
      .one([](const Statement&) { return true; })
      .has_value();
}

int ChainStore::version_of_sources(TrialId trial) const {
  return db_
      .prepared(
          R"sql(SELECT COALESCE(MAX(s.result_version), 0) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                      WHERE ts.trial_id = :trial)sql")
      .bind(":trial", trial)
      .one([](const Statement& row) { return static_cast<int>(row.integer(0)); })
      .value_or(0);
}

bool ChainStore::hold_without_weights(TrialId trial, const std::vector<SourceFile>& files) {
  const auto lacking =
      std::ranges::find(files, RunId{0}, [](const SourceFile& file) { return file.checkpoint.run; });
  if (lacking == files.end() && !files.empty()) return false;
  const std::string why =
      files.empty()
          ? std::string{"held: the trial whose weights it takes was removed"}
          : fmt::format(
                "held: {}, whose weights it takes, completed and left no checkpoint of its {}: train it "
                "again with 'ablate rerun'",
                lacking->what, lacking->take == protocol::Taken::kBest ? "best evaluation" : "last step");
  db_.prepared(
         "UPDATE trial SET state = 'held', held_for_source = 1, reason = :why, waiting = '' WHERE id = "
         ":trial AND "
         "state = 'queued'")
      .bind(":why", why)
      .bind(":trial", trial)
      .run();
  return true;
}

bool ChainStore::hold_outdated(TrialId trial) {
  for (const SourceFile& file : files(trial)) {
    const TrialRecord source = TrialStore{db_}.get(file.trial);
    if (!source.before_mend() && file.name == protocol::weights_name(file.take, source.identity.config_hash))
      continue;
    db_.prepared(
           "UPDATE trial SET state = 'held', reason = :why, waiting = '' WHERE id = :trial AND state = "
           "'queued'")
        .bind(":why",
              fmt::format("held: {}, whose weights it takes, is from before a correction of the trainer: "
                          "'ablate retry SWEEP --before-mend' trains both",
                          file.what))
        .bind(":trial", trial)
        .run();
    return true;
  }
  return false;
}

void ChainStore::note(RunId run, const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files)
    db_.prepared(
           "INSERT INTO run_source (run_id, name, source_run, step, sha256) VALUES (:run, :name, :source, "
           ":step, "
           ":sha256)")
        .bind(":run", run)
        .bind(":name", file.name)
        .bind(":source", file.checkpoint.run)
        .bind(":step", file.checkpoint.step)
        .bind(":sha256", file.checkpoint.sha256)
        .run();
}

std::vector<ChainStore::Given> ChainStore::given(RunId run) const {
  return db_
      .prepared("SELECT name, sha256, source_run, step FROM run_source WHERE run_id = :run ORDER BY name")
      .bind(":run", run)
      .all([](const Statement& row) {
        return Given{.name = row.text(0),
                     .sha256 = row.text(1),
                     .run = static_cast<RunId>(row.integer(2)),
                     .step = static_cast<std::uint32_t>(row.integer(3))};
      });
}

}  // namespace abl::storage
