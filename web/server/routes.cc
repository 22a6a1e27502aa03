// SPDX-License-Identifier: Apache-2.0
#include "web/server/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>

#include "storage/metric_store.h"
#include "storage/trial_store.h"
#include "views/read.h"

namespace abl::web {
namespace {

using Path = std::span<const std::string>;

const std::string kBelow = "/api/v1/";
constexpr std::string_view kLogPath = "runs/*/log";
constexpr std::size_t kLogChunkBytes = 256 * 1024;

/// The one answer that is no message: log bytes from an offset on, as they are. X-Log-Bytes: how many there
/// are in all, so that a reader knows whether to go on.
Answer log(const views::Query& query, storage::Database& db) {
  query.allow_only(std::array<std::string_view, 1>{"offset"});
  const storage::RunId run = views::parse_id("run", query.name);
  const std::uint64_t bytes = storage::TrialStore{db}.run(run).log_bytes;
  const auto text = query.value("offset");
  const std::uint64_t offset =
      text ? views::parse_number("offset", *text, 0, std::numeric_limits<std::int64_t>::max()) : 0;
  Answer answer{.type = "text/plain; charset=utf-8", .headers = {{"X-Log-Bytes", std::to_string(bytes)}}};
  if (offset < bytes) answer.body = storage::MetricStore{db}.log(run, offset, kLogChunkBytes);
  return answer;
}

/// "events, metrics, runs, sweeps or workers": what a path below the version begins with.
std::string beginnings() {
  std::set<std::string_view> names{"events"};
  for (const views::Read* read : views::all_reads()) names.insert(read->path.substr(0, read->path.find('/')));
  const std::string_view last = *names.rbegin();
  names.erase(last);
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

const views::Read* find_read(Path path) {
  const auto reads = views::all_reads();
  const auto found = std::ranges::find_if(
      reads, [&](const views::Read* read) { return match(read->path, path).has_value(); });
  return found == reads.end() ? nullptr : *found;
}

/// What is below /api/v1/, or nothing: it is of no version that there is.
std::optional<Path> below_version(const Target& target) {
  if (target.path.size() < 2 || target.path[0] != "api" || target.path[1] != "v1") return std::nullopt;
  return Path{target.path}.subspan(2);
}

Answer route(const Target& target, const views::Stored& stored) {
  const auto path = below_version(target);
  if (!path) throw Error{Code::kNotFound, "unknown API version: expected /api/v1/…"};
  if (const auto run = match(kLogPath, *path)) return log({*run, target.query}, stored.db);
  if (const views::Read* read = find_read(*path)) {
    const views::Query query{*match(read->path, *path), target.query};
    query.allow_only(read->parameters);
    return Answer{.body = read->answer(query, stored)};
  }
  throw Error{Code::kNotFound, fmt::format("unknown path '/{}'; expected {} below /api/v1/",
                                           fmt::join(target.path, "/"), beginnings())};
}

}  // namespace

std::string api_route(const Target& target) {
  const auto path = below_version(target);
  if (path && match(kLogPath, *path)) return kBelow + std::string{kLogPath};
  const views::Read* read = path ? find_read(*path) : nullptr;
  return read ? kBelow + std::string{read->path} : "/api";
}

std::vector<std::string> api_routes() {
  std::vector<std::string> routes{kBelow + std::string{kLogPath}, "/api"};
  for (const views::Read* read : views::all_reads()) routes.push_back(kBelow + std::string{read->path});
  return routes;
}

bool is_quick(const Target& target) {
  const auto path = below_version(target);
  if (!path || match(kLogPath, *path)) return true;
  const views::Read* read = find_read(*path);
  return !read || read->quick;
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
