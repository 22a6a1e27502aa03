// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr int kRunsListed = 1000;
constexpr std::uint32_t kMostRuns = 1000;
/// Summaries of metrics in a list of runs; where there are more, each run has its share.
constexpr std::size_t kMostMetrics = 30'000, kLeastMetrics = 8;

}  // namespace

v1::ListRunsResponse list_runs(storage::Database& db, const v1::ListRunsRequest& request) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore store{db};
  std::optional<storage::SweepId> sweep;
  if (!request.sweep().empty()) sweep = storage::SweepStore{db}.get(request.sweep()).id;
  std::optional<storage::TrialId> trial;
  if (request.trial() != 0) trial = store.get(request.trial()).id;
  if (request.limit() > kMostRunsListed)
    throw Error{Code::kInvalidArgument,
                fmt::format("limit {}: at most {} runs are listed at once; name a sweep or a trial",
                            request.limit(), kMostRunsListed)};
  const storage::WhichRuns which{.sweep = sweep, .trial = trial, .before = request.before()};
  const auto runs =
      store.list_runs(which, request.limit() == 0 ? kRunsListed : static_cast<int>(request.limit()));
  const auto share =
      std::max<std::size_t>(kLeastMetrics, kMostMetrics / std::max<std::size_t>(1, runs.size()));
  v1::ListRunsResponse message;
  for (const auto& run : runs) *message.add_runs() = run_summary(db, run, static_cast<std::uint32_t>(share));
  message.set_left_out(store.count_runs(which) - static_cast<std::uint32_t>(runs.size()));
  return message;
}

extern const Read kRunsRead{
    .path = "runs",
    .parameters = {"sweep", "trial", "limit", "before"},
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::ListRunsRequest request;
          request.set_sweep(query.value("sweep").value_or(""));
          request.set_trial(query.number_or("trial", 0, kHighestId));
          request.set_limit(query.number_or("limit", 0, kMostRuns));
          request.set_before(query.number_or("before", 0, kHighestId));
          return to_json(list_runs(stored.db, request));
        },
};

}  // namespace abl::views
