// SPDX-License-Identifier: Apache-2.0
#include "storage/depot_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "storage/chain_store.h"
#include "storage/part_store.h"
#include "storage/trial_store.h"

namespace abl::storage {

/// The run, for who has it. A run of another results file, or of a copy of this one, has another token.
/// `or_part`: or takes part in it.
RunRecord DepotStore::held(RunId run, const Holder& holder, bool or_part) const {
  const auto refuse = [&] {
    return Error{Code::kPermissionDenied, fmt::format("run {} is not a run of this worker", run)};
  };
  try {
    RunRecord record = TrialStore{db_}.run(run);
    if (record.token.empty() || record.token != holder.token) throw refuse();
    if (holder.worker.empty() || record.worker == holder.worker) return record;
    const auto parts = or_part ? PartStore{db_}.of(run) : std::vector<RunPart>{};
    if (std::ranges::find(parts, holder.worker, &RunPart::worker) == parts.end()) throw refuse();
    return record;
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) throw refuse();
    throw;
  }
}

TrialId DepotStore::written(RunId run, const Holder& holder, const std::string& sha256) const {
  const RunRecord record = held(run, holder);
  const bool known = db_.prepared("SELECT 1 FROM checkpoint WHERE run_id = :run AND sha256 = :sha256")
                         .bind(":run", run)
                         .bind(":sha256", sha256)
                         .one([](const Statement&) { return true; })
                         .has_value();
  if (!known)
    throw Error{Code::kNotFound, fmt::format("run {} has not reported such a checkpoint here", run)};
  return record.trial;
}

void DepotStore::expect_readable(RunId run, const Holder& holder, const std::string& sha256) const {
  const RunRecord record = held(run, holder, /*or_part=*/true);
  const bool own = db_.prepared(R"sql(SELECT 1 FROM run r JOIN checkpoint c ON c.run_id = r.id
               WHERE r.trial_id IN (:trial, (SELECT continues FROM trial WHERE id = :trial)) AND c.sha256 = :sha256)sql")
                       .bind(":trial", record.trial)
                       .bind(":sha256", sha256)
                       .one([](const Statement&) { return true; })
                       .has_value();
  if (own) return;
  const bool given = db_.prepared("SELECT 1 FROM run_source WHERE run_id = :run AND sha256 = :sha256")
                         .bind(":run", run)
                         .bind(":sha256", sha256)
                         .one([](const Statement&) { return true; })
                         .has_value();
  if (!given)
    throw Error{Code::kPermissionDenied,
                fmt::format("run {} goes on from no such file, and takes none", run)};
}

std::string DepotStore::data_of(RunId run, const Holder& holder) const {
  return TrialStore{db_}.get(held(run, holder, /*or_part=*/true).trial).data;
}

bool DepotStore::others_wait(TrialId trial) const {
  return db_
      .prepared(R"sql(SELECT 1 FROM trial_source ts CROSS JOIN trial t ON t.id = ts.trial_id
                      WHERE ts.source_id = :trial AND ts.name <> '' AND t.state NOT IN ('completed', 'cancelled') LIMIT 1)sql")
      .bind(":trial", trial)
      .one([](const Statement&) { return true; })
      .has_value();
}

DepotStore::Wanted DepotStore::wanted(TrialId trial) const {
  Wanted wanted;
  const auto state = db_.prepared("SELECT state FROM trial WHERE id = :trial")
                         .bind(":trial", trial)
                         .one([](const Statement& row) { return row.text(0); });
  if (!state || *state == "cancelled") return wanted;
  if (*state != "completed") {
    for (CheckpointRecord& checkpoint : TrialStore{db_}.checkpoints_of(trial))
      wanted.any_of.push_back(std::move(checkpoint.sha256));
    return wanted;
  }
  // one of those that wait for each kind of its weights: the others take the same file
  const auto waiting =
      db_.prepared(R"sql(SELECT MIN(ts.trial_id) FROM trial_source ts CROSS JOIN trial t ON t.id = ts.trial_id
                         WHERE ts.source_id = :trial AND ts.name <> '' AND t.state NOT IN ('completed', 'cancelled')
                         GROUP BY ts.take)sql")
          .bind(":trial", trial)
          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId other : waiting)
    for (const SourceFile& file : ChainStore{db_}.files(other))
      if (file.trial == trial && !file.checkpoint.sha256.empty()) wanted.all.insert(file.checkpoint.sha256);
  return wanted;
}

}  // namespace abl::storage
