// SPDX-License-Identifier: Apache-2.0
#include "storage/weights_store.h"

#include <fmt/format.h>

#include "storage/chain_store.h"

namespace abl::storage {

void WeightsStore::insert(TrialId trial, const std::map<std::string, std::string>& wanted) {
  for (const auto& [name, sha256] : wanted)
    db_.prepared("INSERT INTO trial_weights (trial_id, name, sha256) VALUES (:trial, :name, :sha256)")
        .bind(":trial", trial)
        .bind(":name", name)
        .bind(":sha256", sha256)
        .run();
}

std::optional<WeightsStore::Wrong> WeightsStore::wrong(
    const RunRecord& run, const std::map<std::string, std::string>& reported) const {
  for (const auto& given : ChainStore{db_}.given(run.id)) {
    const auto file = reported.find(given.name);
    if (file == reported.end() || given.sha256.empty() || file->second == given.sha256) continue;
    return Wrong{given.name, given.sha256,
                 fmt::format("weights '{}' on worker '{}' have the SHA-256 {}; run {} wrote {}", given.name,
                             run.worker, file->second, given.run, given.sha256)};
  }
  for (const std::string& name : standing_alone(run.trial)) {
    const auto file = reported.find(name);
    const auto stands_for = pinned(name);
    if (file == reported.end() || !stands_for || *stands_for == file->second) continue;
    return Wrong{name, *stands_for,
                 "weights '" + name + "' on worker '" + run.worker + "' have the SHA-256 " + file->second +
                     ", this store's results are of " + *stands_for +
                     "; give the worker the same file, or the weights another name"};
  }
  return std::nullopt;
}

void WeightsStore::pin(const RunRecord& run, const std::map<std::string, std::string>& reported) {
  if (const auto other = wrong(run, reported)) throw Error{Code::kFailedPrecondition, other->how};
  for (const std::string& name : standing_alone(run.trial)) {
    const auto file = reported.find(name);
    if (file == reported.end()) continue;
    db_.prepared("INSERT OR IGNORE INTO weights_pin (name, sha256, run_id) VALUES (:name, :sha256, :run)")
        .bind(":name", name)
        .bind(":sha256", file->second)
        .bind(":run", run.id)
        .run();
  }
}

std::optional<std::string> WeightsStore::pinned(const std::string& name) const {
  return db_.prepared("SELECT sha256 FROM weights_pin WHERE name = :name")
      .bind(":name", name)
      .one([](const Statement& row) { return row.text(0); });
}

/// The names whose file the recipe does not say.
std::vector<std::string> WeightsStore::standing_alone(TrialId trial) const {
  return db_.prepared("SELECT name FROM trial_weights WHERE trial_id = :trial AND sha256 = '' ORDER BY name")
      .bind(":trial", trial)
      .all([](const Statement& row) { return row.text(0); });
}

}  // namespace abl::storage
