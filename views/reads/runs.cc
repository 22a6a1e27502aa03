// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr std::uint32_t kRunsListed = 1000, kMostRuns = 1000;
/// How far `left_out` counts: a list of 100,000 runs is not looked at as a whole for a page of it.
constexpr std::uint32_t kMostCounted = 1000;
/// Summaries of metrics in a list of runs; where there are more, each run has its share.
constexpr std::size_t kMostMetrics = 30'000, kLeastMetrics = 8;

/// The runs of a trial, newest first, where it stands in that sweep.
std::vector<storage::RunId> runs_of(const storage::TrialStore& store, storage::TrialId trial,
                                    const std::vector<storage::SweepId>& claimants,
                                    std::optional<storage::SweepId> sweep, storage::RunId before) {
  std::vector<storage::RunId> ids;
  if (sweep && std::ranges::find(claimants, *sweep) == claimants.end()) return ids;
  for (const auto& run : store.runs_of(trial))
    if (before == 0 || run.id < before) ids.push_back(run.id);
  std::ranges::sort(ids, std::greater{});
  return ids;
}

}  // namespace

v1::ListRunsResponse list_runs(storage::Database& db, const v1::ListRunsRequest& request) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore store{db};
  const storage::SweepStore sweeps{db};
  std::optional<storage::SweepId> sweep;
  if (!request.sweep().empty()) sweep = sweeps.get_brief(request.sweep()).id;
  std::optional<storage::TrialId> trial;
  if (request.trial() != 0) trial = store.get(request.trial()).id;
  if (request.limit() > kMostRunsListed)
    throw Error{Code::kInvalidArgument,
                fmt::format("limit {}: at most {} runs are listed at once; name a sweep or a trial",
                            request.limit(), kMostRunsListed)};
  const std::uint32_t limit = request.limit() == 0 ? kRunsListed : request.limit();
  auto ids = trial ? runs_of(store, *trial, sweeps.sweeps_with(*trial), sweep, request.before())
                   : sweeps.runs(sweep, request.before(), limit + kMostCounted);
  const std::size_t left_out = ids.size() - std::min<std::size_t>(ids.size(), limit);
  ids.resize(ids.size() - left_out);
  std::vector<storage::RunRecord> runs;
  for (const storage::RunId id : ids) runs.push_back(store.run(id));
  const auto share =
      std::max<std::size_t>(kLeastMetrics, kMostMetrics / std::max<std::size_t>(1, runs.size()));
  v1::ListRunsResponse message;
  for (const auto& run : runs) *message.add_runs() = run_summary(db, run, static_cast<std::uint32_t>(share));
  message.set_left_out(static_cast<std::uint32_t>(left_out));
  return message;
}

extern const Read kRunsRead{
    .path = "runs",
    .about = "Runs, newest first",
    .parameters =
        {{.name = "sweep", .about = "Only runs of this sweep"},
         {.name = "trial",
          .about = "Only runs of this trial; 0: of all trials",
          .number = Range{.otherwise = 0}},
         {.name = "limit",
          .about = "Runs to return at most; 0: the maximum",
          .number = Range{.highest = kMostRuns, .otherwise = 0}},
         {.name = "before",
          .about =
              "Only runs older than this one; to continue, the last run of the answer; 0: from the newest",
          .number = Range{.otherwise = 0}}},
    .message = v1::ListRunsResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::ListRunsRequest request;
          request.set_sweep(query.text("sweep"));
          request.set_trial(query.number("trial"));
          request.set_limit(query.number("limit"));
          request.set_before(query.number("before"));
          return to_json(list_runs(stored.db, request));
        },
};

}  // namespace abl::views
