// SPDX-License-Identifier: Apache-2.0
#include "web/server/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "storage/metric_store.h"
#include "storage/trial_store.h"

namespace abl::web {
namespace {

using Path = std::span<const std::string>;

const std::string kBelow = "/api/v1/";
constexpr std::size_t kLogChunkBytes = 256 * 1024;

/// Log bytes from an offset on, as they are. X-Log-Bytes: how many there are in all, so that a reader knows
/// whether to go on.
Answer log(const views::Query& query, const views::Stored& stored) {
  const storage::RunId run = views::parse_id("run", query.name);
  const std::uint64_t bytes = storage::TrialStore{stored.db}.run(run).log_bytes;
  const std::uint64_t offset = query.long_number("offset");
  Answer answer{.type = "text/plain; charset=utf-8", .headers = {{"X-Log-Bytes", std::to_string(bytes)}}};
  if (offset < bytes) answer.body = storage::MetricStore{stored.db}.log(run, offset, kLogChunkBytes);
  return answer;
}

const TextRead* find_text(Path path) {
  const auto found = std::ranges::find_if(
      text_reads(), [&](const TextRead* read) { return match(read->path, path).has_value(); });
  return found == text_reads().end() ? nullptr : *found;
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
  if (!path && target.path.size() == 1) {
    views::Query{.name = {}, .parameters = target.query, .declared = {}}.check();
    return Answer{.body = api_description()};
  }
  if (!path)
    throw Error{Code::kNotFound, "unknown API version: expected /api/v1/…, or /api, which describes it"};
  if (const TextRead* read = find_text(*path)) {
    const views::Query query{*match(read->path, *path), target.query, read->parameters};
    query.check();
    return read->answer(query, stored);
  }
  if (const views::Read* read = find_read(*path)) {
    const views::Query query{*match(read->path, *path), target.query, read->parameters};
    query.check();
    return Answer{.body = read->answer(query, stored)};
  }
  throw Error{Code::kNotFound, fmt::format("unknown path '/{}'; expected {} below /api/v1/",
                                           fmt::join(target.path, "/"), beginnings())};
}

}  // namespace

const TextRead kLogRead{
    .path = "runs/*/log",
    .of = &views::kRunOfPath,
    .about = "Bytes of the run's log, 256 KiB at most",
    .parameters = {{.name = "offset",
                    .about = "From this byte on",
                    .number =
                        views::Range{.highest = std::numeric_limits<std::int64_t>::max(), .otherwise = 0}}},
    .types = {"text/plain"},
    .quick = true,
    .answer = log,
};

std::span<const TextRead* const> text_reads() {
  static constexpr std::array kAll{&kLogRead, &kPrintedRead};
  return kAll;
}

std::string api_route(const Target& target) {
  const auto path = below_version(target);
  if (const TextRead* text = path ? find_text(*path) : nullptr) return kBelow + std::string{text->path};
  const views::Read* read = path ? find_read(*path) : nullptr;
  return read ? kBelow + std::string{read->path} : "/api";
}

std::vector<std::string> api_routes() {
  std::vector<std::string> routes{"/api"};
  for (const TextRead* read : text_reads()) routes.push_back(kBelow + std::string{read->path});
  for (const views::Read* read : views::all_reads()) routes.push_back(kBelow + std::string{read->path});
  return routes;
}

bool is_quick(const Target& target) {
  const auto path = below_version(target);
  if (!path) return true;
  if (const TextRead* text = find_text(*path)) return text->quick;
  const views::Read* read = find_read(*path);
  return !read || read->quick;
}

Answer api_answer(const Target& target, storage::Database& db, views::TableCache& tables,
                  const views::OtherPlaces& others) {
  try {
    return route(target, {db, tables, &others});
  } catch (const Error& error) {
    return error_answer(error.code(), error.what());
  } catch (const std::exception& error) {
    return error_answer(Code::kInternal, error.what());
  }
}

}  // namespace abl::web
