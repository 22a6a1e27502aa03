// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "scheduler/depot.h"

namespace abl::scheduler {
namespace {

void check_name(const std::string& name) {
  constexpr std::size_t kLongest = 100;
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (name.empty() || name.size() > kLongest || name.find_first_not_of(kLetters) != std::string::npos)
    throw Error{Code::kInvalidArgument,
                fmt::format("invalid data name '{}': expected letters, digits, '-', '_' and '.'",
                            name.size() > kLongest ? name.substr(0, kLongest) + "…" : name)};
}

}  // namespace

PushedData::PushedData(const std::filesystem::path& folder) : file_{folder / "names.json"} {
  if (folder.empty() || !std::filesystem::exists(file_)) return;
  try {
    const auto kept = nlohmann::json::parse(read_file(file_));  // items() would outlive a temporary
    for (const auto& [name, set] : kept.items()) {
      check_name(name);
      check_digest(set.at("sha256").get<std::string>());  // it becomes a part of a path
      sets_[name] = {.sha256 = set.at("sha256").get<std::string>(),
                     .fingerprint = set.at("fingerprint").get<std::string>(),
                     .bytes = set.at("bytes").get<std::uint64_t>(),
                     .pushed = Time{Milliseconds{set.at("pushed_ms").get<std::int64_t>()}},
                     .by = set.at("by").get<std::string>()};
    }
  } catch (const std::exception& error) {
    trouble_ = error.what();
    log_error("cannot read {}: {}; pushed data sets are not offered to workers", file_.string(), trouble_);
    sets_.clear();
  }
}

void PushedData::expect_readable() const {
  if (!readable())
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("the list of pushed data sets, {}, cannot be read: {}; repair it or move it away on the "
                    "scheduler's machine, then restart the scheduler",
                    file_.string(), trouble_)};
}

std::map<std::string, PushedSet> PushedData::all() const {
  const std::lock_guard lock{mutex_};
  return sets_;
}

std::map<std::string, std::string> PushedData::fingerprints() const {
  std::map<std::string, std::string> fingerprints;
  const std::lock_guard lock{mutex_};
  for (const auto& [name, set] : sets_) fingerprints.emplace(name, set.fingerprint);
  return fingerprints;
}

std::optional<PushedSet> PushedData::find(const std::string& name) const {
  const std::lock_guard lock{mutex_};
  const auto found = sets_.find(name);
  return found == sets_.end() ? std::nullopt : std::optional{found->second};
}

void PushedData::add(const std::string& name, const PushedSet& set) {
  check_name(name);
  expect_readable();
  const std::lock_guard lock{mutex_};
  auto sets = sets_;
  const auto found = sets.find(name);
  if (found != sets.end() && found->second.sha256 == set.sha256) return;
  if (found != sets.end())
    throw Error{
        Code::kAlreadyExists,
        fmt::format(
            "another data set was pushed as '{0}' before ({1}): push this one under a name of its own, or, "
            "where it is to take that one's place, remove that one first ('ablate data rm {0}')",
            name, found->second.fingerprint)};
  if (sets.size() >= kMost)
    throw Error{Code::kResourceExhausted,
                fmt::format("{} data sets are pushed, and no more may be; remove some with 'ablate data rm'",
                            sets.size())};
  sets[name] = set;
  write(sets);
  sets_ = std::move(sets);
}

PushedSet PushedData::remove(const std::string& name) {
  expect_readable();
  const std::lock_guard lock{mutex_};
  auto sets = sets_;
  const auto found = sets.find(name);
  if (found == sets.end()) {
    std::vector<std::string> names;
    for (const auto& [known, set] : sets) names.push_back(known);
    throw Error{Code::kNotFound,
                fmt::format("no data set '{}' was pushed{}", name, did_you_mean(name, names))};
  }
  PushedSet removed = found->second;
  sets.erase(found);
  write(sets);
  sets_ = std::move(sets);
  return removed;
}

void PushedData::write(const std::map<std::string, PushedSet>& sets) const {
  auto text = nlohmann::json::object();
  for (const auto& [name, set] : sets)
    text[name] = {{"sha256", set.sha256},
                  {"fingerprint", set.fingerprint},
                  {"bytes", set.bytes},
                  {"pushed_ms", set.pushed.time_since_epoch().count()},
                  {"by", set.by}};
  make_folder(file_.parent_path());
  write_file_atomically(file_, text.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace abl::scheduler
