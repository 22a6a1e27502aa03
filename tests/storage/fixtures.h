// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "storage/database.h"
#include "storage/metric_store.h"
#include "storage/queue_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "tests/temporary_folder.h"

namespace abl::storage {

/// `code` of the Error that `action` throws, and its message; kOk and "" when it throws none.
template <class F>
std::pair<Code, std::string> error_of(F action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::kOk, ""};
}

/// A sweep with `rows` rows named a, b, c … whose trials have the hashes "<prefix>-<row>-<seed>".
struct SweepText {
  NewSweep sweep;
  std::vector<NewTrial> trials;
};
inline SweepText sweep_of(const std::string& name, int rows, int seeds, const std::string& prefix = "h") {
  SweepText result;
  result.sweep = {.name = name,
                  .file = name + ".yaml",
                  .text = "name: " + name,
                  .canonical = "{}",
                  .canonical_hash = "c-" + name};
  result.sweep.baseline = "a";
  result.sweep.paper_heading = "paper: ImageNet, 100 epochs";
  for (int row = 0; row < rows; ++row) {
    const std::string id(1, static_cast<char>('a' + row));
    result.sweep.rows.push_back({.id = id,
                                 .label = "row " + id,
                                 .set_json = R"({"model.attention.share":"QKV)" + id + R"("})",
                                 .config_hash = prefix + "-" + id,
                                 .model = "{\"model\":\"" + id + "\"}",
                                 .paper = {{"acc", "79.7" + std::to_string(row)}}});
  }
  result.sweep.columns = {{.name = "acc",
                           .heading = "top-1",
                           .kind = Column::Kind::kMetric,
                           .source = "val/top1",
                           .take = protocol::Take::kLast,
                           .unit = protocol::Unit::kPercent,
                           .better = protocol::Better::kHigher,
                           .digits = 2},
                          {.name = "params",
                           .heading = "params",
                           .kind = Column::Kind::kCount,
                           .source = "params.weights",
                           .take = protocol::Take::kLast,
                           .unit = protocol::Unit::kMillion,
                           .better = protocol::Better::kLower,
                           .digits = 2},
                          {.name = "share",
                           .heading = "sharing",
                           .kind = Column::Kind::kSetting,
                           .source = "model.attention.share",
                           .take = protocol::Take::kLast,
                           .better = protocol::Better::kNone,
                           .digits = 0}};
  for (int seed = 0; seed < seeds; ++seed) {
    result.sweep.seeds.push_back(seed);
    for (int row = 0; row < rows; ++row) {
      const std::string hash =
          prefix + "-" + std::string(1, static_cast<char>('a' + row)) + "-" + std::to_string(seed);
      result.trials.push_back({.row = row,
                               .seed_index = seed,
                               .seed = seed,
                               .config = "{\"seed\":" + std::to_string(seed) + "}",
                               .config_hash = hash,
                               .result_version = 1,
                               .data = "cifar10",
                               .max_retries = 1});
    }
  }
  return result;
}

/// The same document, of the version that is due.
inline RenewedTrial as_due(const TrialRecord& trial) {
  return {trial.config, trial.identity.config_hash, trial.due_version};
}

/// A store in a folder of its own, with a clock that moves when told to.
class StoreTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  Database db{folder / "results.db", Database::Mode::kWrite};
  SweepStore sweeps{db};
  TrialStore trials{db};
  MetricStore metrics{db};
  Time now{std::chrono::hours{480'000}};

  Submitted submit(const SweepText& text) { return sweeps.insert(text.sweep, text.trials, now); }
  Lease lease(TrialId trial, const std::string& worker = "alice") {
    return trials.lease(trial, worker, worker + "-host", now, now + std::chrono::seconds{30}).value();
  }
  /// Leases and starts; nothing resumed.
  RunId run(TrialId trial, const std::string& fingerprint = "f1") {
    const RunId id = lease(trial).run;
    trials.start(id, {.total_steps = 100, .data_fingerprint = fingerprint}, now);
    return id;
  }
  TrialState end(RunId id, RunState state, const std::string& reason = "") {
    return trials.end(id, {.state = state, .reason = reason}, now);
  }
  /// Runs a trial to its end with one value of a metric.
  RunId complete(TrialId trial, double value, const std::string& metric = "val/top1") {
    const RunId id = run(trial);
    metrics.append(
        id,
        {{.name = metric, .steps = {100}, .values = {value}, .times_ms = {now.time_since_epoch().count()}}});
    end(id, RunState::kCompleted);
    return id;
  }
  /// The trials that could be run now, by priority, seed, sweep and row.
  std::vector<TrialId> queue() {
    const QueueStore store{db};
    std::vector<std::tuple<int, std::uint32_t, SweepId, std::uint32_t, TrialId>> places;
    store.each_open([&](const OpenTrial& trial) {
      if (trial.under_way || trial.not_before > now) return;
      for (const auto& claim : trial.claims)
        if (const OpenSweep sweep = store.sweep(claim.sweep).value(); sweep.active)
          places.emplace_back(-sweep.priority, claim.seed_index, claim.sweep, claim.row, trial.id);
    });
    std::ranges::sort(places);
    std::vector<TrialId> ids;
    for (const auto& place : places)
      if (std::ranges::find(ids, std::get<4>(place)) == ids.end()) ids.push_back(std::get<4>(place));
    return ids;
  }
};

}  // namespace abl::storage
