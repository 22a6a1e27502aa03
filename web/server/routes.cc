// SPDX-License-Identifier: Apache-2.0
#include "web/server/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "storage/metric_store.h"
#include "storage/trial_store.h"
#include "views/views.h"

namespace abl::web {
namespace {

/// What an answer is read from.
struct Stored {
  storage::Database& db;
  views::TableCache& tables;
};
constexpr std::uint64_t kHighestId = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kLogChunkBytes = 256 * 1024;
// What one answer holds at most, some 10 MB of JSON each: rows, trials, runs and points here, metrics of
// lists in the views. What is left out is said (`left_out`, `metrics_left_out`), and asked for with `first`,
// or a run at a time; curves of more points are thinned further, or refused where every point is wanted.
constexpr std::uint32_t kMostSweeps = 500, kMostRows = 1000, kRowsUnlessSaid = 200, kMostTrials = 5000,
                        kMostRuns = 1000;
constexpr std::uint64_t kMostPoints = 250'000;

Answer json(const google::protobuf::Message& message) { return Answer{.body = views::to_json(message)}; }

std::uint32_t id(std::string_view what, std::string_view text) {
  return static_cast<std::uint32_t>(parse_number(what, text, 1, kHighestId));
}

std::uint32_t number_or(const Target& target, std::string_view name, std::uint32_t otherwise,
                        std::uint32_t highest) {
  const auto text = target.value(name);
  return text ? static_cast<std::uint32_t>(parse_number(name, *text, 0, highest)) : otherwise;
}

/// "?first=200&count=200".
views::Page page(const Target& target, std::uint32_t otherwise, std::uint32_t most) {
  target.allow_only({"first", "count"});
  return {.first = number_or(target, "first", 0, kHighestId),
          .count = number_or(target, "count", otherwise, most),
          .most_trials = kMostTrials,
          .with_baseline = true};
}

Answer sweeps(const Target& target, const Stored& stored) {
  return json(views::list_sweeps(stored.db, page(target, kMostSweeps, kMostSweeps)));
}

Answer sweep(const Target& target, const Stored& stored) {
  return json(views::sweep_detail(stored.db, target.path[1], page(target, kRowsUnlessSaid, kMostRows)));
}

Answer table(const Target& target, const Stored& stored) {
  const views::Page rows = page(target, kRowsUnlessSaid, kMostRows);
  return json(stored.tables.table(stored.db, target.path[1])->part(rows));
}

Answer runs(const Target& target, const Stored& stored) {
  target.allow_only({"sweep", "trial", "limit", "before"});
  ablate::v1::ListRunsRequest request;
  request.set_sweep(target.value("sweep").value_or(""));
  request.set_trial(number_or(target, "trial", 0, kHighestId));
  request.set_limit(number_or(target, "limit", 0, kMostRuns));
  request.set_before(number_or(target, "before", 0, kHighestId));
  return json(views::list_runs(stored.db, request));
}

Answer run(const Target& target, const Stored& stored) {
  target.allow_only({});
  return json(views::run_detail(stored.db, id("run", target.path[1])));
}

/// Log bytes from an offset on, as they are. X-Log-Bytes: how many there are in all, so that a reader knows
/// whether to go on.
Answer log(const Target& target, const Stored& stored) {
  target.allow_only({"offset"});
  const storage::RunId run = id("run", target.path[1]);
  const std::uint64_t bytes = storage::TrialStore{stored.db}.run(run).log_bytes;
  const auto text = target.value("offset");
  const std::uint64_t offset =
      text ? parse_number("offset", *text, 0, std::numeric_limits<std::int64_t>::max()) : 0;
  Answer answer{.type = "text/plain; charset=utf-8", .headers = {{"X-Log-Bytes", std::to_string(bytes)}}};
  if (offset < bytes) answer.body = storage::MetricStore{stored.db}.log(run, offset, kLogChunkBytes);
  return answer;
}

Answer metrics(const Target& target, const Stored& stored) {
  target.allow_only({"run", "name", "max_points"});
  ablate::v1::GetMetricsRequest request;
  for (const std::string& text : target.values("run")) request.add_runs(id("run", text));
  if (request.runs().empty())
    throw Error{Code::kInvalidArgument, "metrics: no run is named, expected ?run=ID, once or more"};
  for (const std::string& name : target.values("name")) request.add_names(name);
  request.set_max_points(number_or(target, "max_points", 0, 1'000'000));
  return json(views::metrics(stored.db, request, kMostPoints));
}

Answer workers(const Target& target, const Stored& stored) {
  target.allow_only({});
  return json(views::list_workers(stored.db));
}

/// "*" stands for one segment.
struct Route {
  std::vector<std::string_view> path;
  Answer (*answer)(const Target&, const Stored&);
  bool quick = false;
};

const std::vector<Route>& table_of_routes() {
  static const std::vector<Route> routes{
      {.path = {"sweeps"}, .answer = sweeps},
      {.path = {"sweeps", "*"}, .answer = sweep},
      {.path = {"sweeps", "*", "table"}, .answer = table},
      {.path = {"runs"}, .answer = runs},
      {.path = {"runs", "*"}, .answer = run, .quick = true},
      {.path = {"runs", "*", "log"}, .answer = log, .quick = true},
      {.path = {"metrics"}, .answer = metrics},
      {.path = {"workers"}, .answer = workers, .quick = true},
  };
  return routes;
}

bool matches(const Route& route, const std::vector<std::string>& path) {
  if (route.path.size() != path.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i)
    if (route.path[i] != "*" && route.path[i] != path[i]) return false;
  return true;
}

/// Of a path below /api/v1/.
const Route* find_route(const std::vector<std::string>& path) {
  const auto& routes = table_of_routes();
  const auto found = std::ranges::find_if(routes, [&](const Route& route) { return matches(route, path); });
  return found == routes.end() ? nullptr : &*found;
}

bool is_of_this_version(const Target& target) {
  return target.path.size() >= 2 && target.path[0] == "api" && target.path[1] == "v1";
}

Target below_version(const Target& target) {
  return {.path = {target.path.begin() + 2, target.path.end()}, .query = target.query};
}

Answer route(const Target& target, const Stored& stored) {
  if (!is_of_this_version(target)) throw Error{Code::kNotFound, "unknown API version: expected /api/v1/…"};
  const Target below = below_version(target);
  if (const Route* route = find_route(below.path)) return route->answer(below, stored);
  throw Error{
      Code::kNotFound,
      fmt::format("unknown path '/{}'; expected sweeps, runs, metrics, workers or events below /api/v1/",
                  fmt::join(target.path, "/"))};
}

}  // namespace

bool is_quick(const Target& target) {
  if (!is_of_this_version(target)) return true;
  const Route* route = find_route(below_version(target).path);
  return !route || route->quick;
}

Answer api_answer(const Target& target, storage::Database& db, views::TableCache& tables) {
  try {
    return route(target, {db, tables});
  } catch (const Error& error) {
    return error_answer(error.code(), error.what());
  } catch (const std::exception& error) {
    return error_answer(Code::kInternal, error.what());
  }
}

}  // namespace abl::web
