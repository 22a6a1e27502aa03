// SPDX-License-Identifier: Apache-2.0
#include "web/server/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "storage/metric_store.h"
#include "storage/trial_store.h"
#include "views/views.h"

namespace abl::web {
namespace {

using storage::Database;
constexpr std::uint64_t kHighestId = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kLogChunkBytes = 256 * 1024;

Answer json(const google::protobuf::Message& message) { return Answer{.body = views::to_json(message)}; }

std::uint32_t id(std::string_view what, std::string_view text) {
  return static_cast<std::uint32_t>(parse_number(what, text, 1, kHighestId));
}

std::uint32_t number_or(const Target& target, std::string_view name, std::uint32_t otherwise,
                        std::uint32_t highest) {
  const auto text = target.value(name);
  return text ? static_cast<std::uint32_t>(parse_number(name, *text, 0, highest)) : otherwise;
}

Answer sweeps(const Target& target, Database& db) {
  target.allow_only({});
  return json(views::list_sweeps(db));
}

Answer sweep(const Target& target, Database& db) {
  target.allow_only({});
  return json(views::sweep_detail(db, target.path[1]));
}

Answer table(const Target& target, Database& db) {
  target.allow_only({});
  return json(views::table(db, target.path[1]));
}

Answer runs(const Target& target, Database& db) {
  target.allow_only({"sweep", "trial", "limit"});
  ablate::v1::ListRunsRequest request;
  request.set_sweep(target.value("sweep").value_or(""));
  request.set_trial(number_or(target, "trial", 0, kHighestId));
  request.set_limit(number_or(target, "limit", 0, 100'000));
  return json(views::list_runs(db, request));
}

Answer run(const Target& target, Database& db) {
  target.allow_only({});
  return json(views::run_detail(db, id("run", target.path[1])));
}

/// Log bytes from an offset on, as they are. X-Log-Bytes: how many there are in all, so that a reader knows
/// whether to go on.
Answer log(const Target& target, Database& db) {
  target.allow_only({"offset"});
  const storage::RunId run = id("run", target.path[1]);
  const std::uint64_t bytes = storage::TrialStore{db}.run(run).log_bytes;
  const auto text = target.value("offset");
  const std::uint64_t offset =
      text ? parse_number("offset", *text, 0, std::numeric_limits<std::int64_t>::max()) : 0;
  Answer answer{.type = "text/plain; charset=utf-8", .headers = {{"X-Log-Bytes", std::to_string(bytes)}}};
  if (offset < bytes) answer.body = storage::MetricStore{db}.log(run, offset, kLogChunkBytes);
  return answer;
}

Answer metrics(const Target& target, Database& db) {
  target.allow_only({"run", "name", "max_points"});
  ablate::v1::GetMetricsRequest request;
  for (const std::string& text : target.values("run")) request.add_runs(id("run", text));
  if (request.runs().empty())
    throw Error{Code::kInvalidArgument, "metrics: no run is named, expected ?run=ID, once or more"};
  for (const std::string& name : target.values("name")) request.add_names(name);
  request.set_max_points(number_or(target, "max_points", 0, 1'000'000));
  return json(views::metrics(db, request));
}

Answer workers(const Target& target, Database& db) {
  target.allow_only({});
  return json(views::list_workers(db));
}

/// "*" stands for one segment.
struct Route {
  std::vector<std::string_view> path;
  Answer (*answer)(const Target&, Database&);
};

const std::vector<Route>& table_of_routes() {
  static const std::vector<Route> routes{
      {{"sweeps"}, sweeps},   {{"sweeps", "*"}, sweep}, {{"sweeps", "*", "table"}, table},
      {{"runs"}, runs},       {{"runs", "*"}, run},     {{"runs", "*", "log"}, log},
      {{"metrics"}, metrics}, {{"workers"}, workers},
  };
  return routes;
}

bool matches(const Route& route, const std::vector<std::string>& path) {
  if (route.path.size() != path.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i)
    if (route.path[i] != "*" && route.path[i] != path[i]) return false;
  return true;
}

Answer route(const Target& target, Database& db) {
  if (target.path.size() < 2 || target.path[0] != "api" || target.path[1] != "v1")
    throw Error{Code::kNotFound, "there is no such version of the API: expected /api/v1/…"};
  const Target below{.path = {target.path.begin() + 2, target.path.end()}, .query = target.query};
  for (const Route& route : table_of_routes())
    if (matches(route, below.path)) return route.answer(below, db);
  throw Error{
      Code::kNotFound,
      fmt::format("there is no '/{}': expected sweeps, runs, metrics, workers or events below /api/v1/",
                  fmt::join(target.path, "/"))};
}

}  // namespace

Answer api_answer(const Target& target, Database& db) {
  try {
    return route(target, db);
  } catch (const Error& error) {
    return error_answer(error.code(), error.what());
  } catch (const std::exception& error) {
    return error_answer(Code::kInternal, error.what());
  }
}

}  // namespace abl::web
