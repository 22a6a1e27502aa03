// SPDX-License-Identifier: Apache-2.0
#include "storage/curves.h"

#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "protocol/metrics.h"
#include "protocol/number.h"
#include "protocol/probe_results.h"
#include "storage/sqlite_error.h"

namespace abl::storage {
namespace {

/// SplitMix64: every bit of the result depends on every bit of `x`.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// One bit pattern for each value: there are many NaNs and two zeros.
std::uint64_t bits_of(double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
}

void step(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto* digest = static_cast<CurveDigest*>(sqlite3_aggregate_context(context, sizeof(CurveDigest)));
  if (!digest) return sqlite3_result_error_nomem(context);  // zeros, which is an empty digest
  const auto text = [&](int i) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_value_text(arguments[i]));
    return std::string_view{bytes ? bytes : ""};
  };
  const double value = sqlite3_value_type(arguments[2]) != SQLITE_NULL
                           ? sqlite3_value_double(arguments[2])
                           : protocol::non_finite_value(text(3)).value_or(std::nan(""));
  digest->add(text(0), sqlite3_value_int64(arguments[1]), value);
}

void finish(sqlite3_context* context) {
  const auto* digest = static_cast<const CurveDigest*>(sqlite3_aggregate_context(context, 0));
  sqlite3_result_int64(context, digest ? static_cast<std::int64_t>(digest->value()) : 0);
}

}  // namespace

std::optional<std::uint64_t> CurveDigest::of_metric(std::string_view metric) {
  // one of two equal trainings may be probed
  if (protocol::is_probe_metric(metric)) return std::nullopt;
  return protocol::tells_of_the_machine(metric) ? std::nullopt : std::optional{hash_of(metric)};
}

void CurveDigest::add(std::uint64_t of_metric, std::int64_t step, double value) {
  sum_ += mixed(of_metric ^ mixed(static_cast<std::uint64_t>(step) ^ mixed(bits_of(value))));
}

void add_curve_digest(sqlite3* db) {
  const int result = sqlite3_create_function_v2(db, "curve_digest", 4, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                                nullptr, nullptr, step, finish, nullptr);
  if (result != SQLITE_OK) throw sqlite_error(db, result);
}

namespace {

using Seeds = std::vector<std::int64_t>;  // ascending

Seeds common_seeds(const Seeds& one, const Seeds& other) {
  Seeds common;
  std::ranges::set_intersection(one, other, std::back_inserter(common));
  return common;
}

Seeds seeds_of(const auto& curves) {
  Seeds seeds;
  for (const auto& [seed, curve] : curves) seeds.push_back(seed);
  return seeds;
}

}  // namespace

/// Rows found to be equal, and the curves of them all.
struct EqualCurves::Group {
  std::vector<std::size_t> rows;
  Curves curves;
  bool of_several_trials = false;

  void take(const Row& row) {
    for (const auto& [seed, curve] : row.curves) {
      const auto own = curves.try_emplace(seed, curve).first;
      of_several_trials |= own->second.trial != curve.trial;
    }
    rows.push_back(row.row);
  }
};

/// Groups by the seeds that they have curves of: two for a table of which every second row lacks a seed.
class EqualCurves::Families {
 public:
  /// The first group that has a row's curves wherever both have one.
  std::optional<std::size_t> find(const Curves& row) {
    const Seeds seeds = seeds_of(row);
    std::optional<std::size_t> first;
    for (auto& [own, family] : families_) {
      const Seeds common = common_seeds(own, seeds);
      if (common.empty()) continue;
      const auto [index, fresh] = family.by.try_emplace(common);
      if (fresh)
        for (const auto& [group, curves] : family.groups)
          index->second[digests(*curves, common)].insert(group);
      const auto found = index->second.find(digests(row, common));
      if (found != index->second.end() && !found->second.empty())
        first = std::min(first.value_or(*found->second.begin()), *found->second.begin());
    }
    return first;
  }
  void add(std::size_t group, const Curves& curves) {
    Family& family = families_[seeds_of(curves)];
    family.groups.emplace(group, &curves);
    for (auto& [seeds, index] : family.by) index[digests(curves, seeds)].insert(group);
  }
  void remove(std::size_t group, const Curves& curves) {
    const auto family = families_.find(seeds_of(curves));
    family->second.groups.erase(group);
    for (auto& [seeds, index] : family->second.by) index[digests(curves, seeds)].erase(group);
    if (family->second.groups.empty()) families_.erase(family);
  }

 private:
  struct DigestsHash {
    std::size_t operator()(const std::vector<std::int64_t>& digests) const {
      std::uint64_t hash = 0;
      for (const std::int64_t digest : digests)  // which are well mixed themselves
        hash = (hash ^ static_cast<std::uint64_t>(digest)) * 0x9e3779b97f4a7c15;
      return hash;
    }
  };
  using Index = std::unordered_map<std::vector<std::int64_t>, std::set<std::size_t>, DigestsHash>;
  struct Family {
    std::map<std::size_t, const Curves*> groups;
    std::map<Seeds, Index> by;  // digests at some of their seeds -> groups
  };
  static std::vector<std::int64_t> digests(const Curves& curves, const Seeds& seeds) {
    std::vector<std::int64_t> digests;
    for (const std::int64_t seed : seeds) digests.push_back(curves.at(seed).digest);
    return digests;
  }
  std::map<Seeds, Family> families_;
};

void EqualCurves::add(std::size_t row, std::int64_t seed, std::int64_t digest, TrialId trial) {
  if (digest == 0) return;
  if (rows_.empty() || rows_.back().row != row) rows_.push_back({row, {}});
  rows_.back().curves.try_emplace(seed, Curve{digest, trial});
}

std::vector<std::vector<std::size_t>> EqualCurves::groups() const {
  std::deque<Group> groups;  // which stay where they are
  Families families;
  for (const Row& row : rows_) {
    const auto found = families.find(row.curves);
    const std::size_t place = found.value_or(groups.size());
    if (!found) groups.emplace_back();
    Group& group = groups[place];
    const bool grows = std::ranges::any_of(
        row.curves, [&](const auto& curve) { return !group.curves.contains(curve.first); });
    if (found && grows) families.remove(place, group.curves);
    group.take(row);
    if (grows) families.add(place, group.curves);
  }
  std::vector<std::vector<std::size_t>> equal;
  for (Group& group : groups)
    if (group.of_several_trials) equal.push_back(std::move(group.rows));
  return equal;
}

}  // namespace abl::storage
