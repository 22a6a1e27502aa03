// SPDX-License-Identifier: Apache-2.0
#include "storage/equal_curves.h"

#include <algorithm>
#include <set>
#include <utility>

namespace abl::storage {
namespace {

using SeedAndDigest = std::pair<std::int64_t, std::int64_t>;

}  // namespace

/// Rows found to be equal, and the curves of them all.
struct EqualCurves::Group {
  std::vector<std::size_t> rows;
  std::map<std::int64_t, Curve> curves;
  bool of_several_trials = false;

  bool fits(const Row& row) const {
    return std::ranges::all_of(row.curves, [&](const auto& other) {
      const auto own = curves.find(other.first);
      return own == curves.end() || own->second.digest == other.second.digest;
    });
  }
  /// Returns: what the row brings that was not there.
  std::vector<SeedAndDigest> take(const Row& row) {
    std::vector<SeedAndDigest> added;
    for (const auto& [seed, curve] : row.curves) {
      const auto [own, fresh] = curves.try_emplace(seed, curve);
      if (fresh) added.emplace_back(seed, curve.digest);
      of_several_trials |= own->second.trial != curve.trial;
    }
    rows.push_back(row.row);
    return added;
  }
};

void EqualCurves::add(std::size_t row, std::int64_t seed, std::int64_t digest, TrialId trial) {
  if (digest == 0) return;
  if (rows_.empty() || rows_.back().row != row) rows_.push_back({row, {}});
  rows_.back().curves.try_emplace(seed, Curve{digest, trial});
}

std::vector<std::vector<std::size_t>> EqualCurves::groups() const {
  std::vector<Group> groups;
  std::map<SeedAndDigest, std::vector<std::size_t>> with;  // the groups that have such a curve
  for (const Row& row : rows_) {
    std::set<std::size_t> candidates;
    for (const auto& [seed, curve] : row.curves)
      if (const auto found = with.find({seed, curve.digest}); found != with.end())
        candidates.insert(found->second.begin(), found->second.end());
    const auto fitting =
        std::ranges::find_if(candidates, [&](std::size_t candidate) { return groups[candidate].fits(row); });
    const std::size_t place = fitting == candidates.end() ? groups.size() : *fitting;
    if (place == groups.size()) groups.emplace_back();
    for (const SeedAndDigest& added : groups[place].take(row)) with[added].push_back(place);
  }
  std::vector<std::vector<std::size_t>> equal;
  for (Group& group : groups)
    if (group.of_several_trials) equal.push_back(std::move(group.rows));
  return equal;
}

}  // namespace abl::storage
