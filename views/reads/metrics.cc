// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "storage/metric_store.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr std::uint64_t kMostPointsSent = 250'000;

}  // namespace

v1::GetMetricsResponse metrics(storage::Database& db, const v1::GetMetricsRequest& request,
                               std::uint64_t most_points) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore runs{db};
  const storage::MetricStore store{db};
  const std::vector<std::string> names{request.names().begin(), request.names().end()};
  const std::set<storage::RunId> wanted{request.runs().begin(), request.runs().end()};
  if (wanted.size() > std::size_t{kMostRunsMeasured})
    throw Error{Code::kInvalidArgument, fmt::format("{} runs: an answer has the metrics of {} at most",
                                                    wanted.size(), kMostRunsMeasured)};
  const auto count = [&](std::uint32_t max_points) {
    std::uint64_t points = 0;
    for (const auto id : wanted) points += store.points(id, names, max_points);
    return points;
  };
  for (const auto id : wanted) (void)runs.run(id);  // an unknown run is an error, not an empty answer
  std::uint32_t max_points = request.max_points();
  if (const std::uint64_t points = count(max_points); points > most_points) {
    const std::uint64_t series = count(1), each = most_points / std::max<std::uint64_t>(1, series);
    if (max_points == 0 || each < 2)
      throw Error{
          Code::kInvalidArgument,
          fmt::format(
              "{} metric points: an answer has {} at most; name fewer runs or metrics, thin them with "
              "max_points, or use 'ablate export'",
              points, most_points)};
    max_points = static_cast<std::uint32_t>(each);
  }
  v1::GetMetricsResponse message;
  if (max_points != request.max_points()) message.set_thinned_to(max_points);
  for (const auto id : wanted) {
    for (const auto& series : store.series(id, names, max_points)) {
      auto* entry = message.add_series();
      entry->set_run(id);
      *entry->mutable_series() = to_proto(series);
    }
  }
  return message;
}

extern const Read kMetricsRead{
    .path = "metrics",
    .about = "A series for each run and metric, by ascending step",
    .parameters = {kRunsAsked,
                   kMetricsAsked,
                   {.name = "max_points",
                    .about = "Points per series at most, its extremes among them; 0: all",
                    .number = Range{.highest = 1'000'000, .otherwise = 0}}},
    .message = v1::GetMetricsResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::GetMetricsRequest request;
          for (const std::uint32_t run : query.numbers("run")) request.add_runs(run);
          for (const std::string& name : query.texts("name")) request.add_names(name);
          request.set_max_points(query.number("max_points"));
          return to_json(metrics(stored.db, request, kMostPointsSent));
        },
};

}  // namespace abl::views
