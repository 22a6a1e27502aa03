// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sweeps/factors.h"

namespace abl::sweeps {
namespace {

constexpr int kNotApplied = -1;
constexpr std::size_t kMostLevels = 10'000;  // looked at one by one

/// How many levels each axis has; an axis that no factor keeps (`zip`) has one.
std::vector<std::int64_t> axis_sizes(const std::vector<Factor>& factors) {
  std::vector<std::int64_t> sizes(factors.size(), 1);
  for (const Factor& factor : factors) {
    sizes[static_cast<std::size_t>(factor.axis)] = static_cast<std::int64_t>(factor.levels.size());
  }
  return sizes;
}

/// Capped, so that it cannot overflow.
std::int64_t product(const std::vector<std::int64_t>& sizes) {
  constexpr std::int64_t kCap = std::int64_t{1} << 62;
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size > 0 && count > kCap / size) return kCap;
    count *= size;
  }
  return count;
}

/// "groups" for "model.attention.groups" where no other factor ends so.
std::vector<std::string> short_names(const std::vector<Factor>& factors) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> names;
  for (const Factor& factor : factors) {
    const auto same = std::ranges::count_if(
        factors, [&](const Factor& other) { return last(other.key) == last(factor.key); });
    names.push_back(same == 1 ? last(factor.key) : factor.key);
  }
  return names;
}

/// The level of each factor in a combination, or kNotApplied.
using Levels = std::vector<int>;

bool holds(const Factor::Condition& condition, const Levels& levels) {
  const int level = levels[static_cast<std::size_t>(condition.factor)];
  return level != kNotApplied && std::ranges::find(condition.levels, level) != condition.levels.end();
}

bool all_hold(const std::vector<Factor::Condition>& conditions, const Levels& levels) {
  return std::ranges::all_of(conditions,
                             [&](const Factor::Condition& condition) { return holds(condition, levels); });
}

/// Takes away the factors whose condition fails, until nothing changes: a condition on a factor that does not
/// apply fails too.
void apply_conditions(const std::vector<Factor>& factors, Levels& levels) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (levels[i] == kNotApplied || all_hold(factors[i].only_if, levels)) continue;
      levels[i] = kNotApplied;
      changed = true;
    }
  }
}

DraftRow row_of(const FactorPlan& plan, const std::vector<std::string>& names, const Levels& levels) {
  DraftRow row;
  for (std::size_t i = 0; i < plan.factors.size(); ++i) {
    if (levels[i] == kNotApplied) continue;
    const Factor& factor = plan.factors[i];
    const Level& level = factor.levels[static_cast<std::size_t>(levels[i])];
    const char* comma = row.id.empty() ? "" : ",";
    row.label += fmt::format("{}{}={}", row.id.empty() ? "" : ", ", names[i], level.text);
    row.id += fmt::format("{}{}={}", comma, names[i], level.text);
    row.set.push_back({factor.key, level.value, level.place, dotted("factors", factor.key)});
    const auto named = plan.factors.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::none_of(plan.factors.begin(), named,
                     [&](const Factor& before) { return before.axis == factor.axis; }))
      row.levels += (row.levels.empty() ? "" : ",") + level.text;
    row.place = factor.place;
  }
  std::ranges::replace_if(
      row.id, [](unsigned char letter) { return letter <= ' ' || letter == '/'; }, '-');
  if (row.id.empty()) row.id = row.label = "base";
  return row;
}

/// Gives the factors on which `factor` depends levels with which it applies, as far as there are such.
void meet_conditions(const FactorPlan& plan, const Factor& factor, bool last, Levels& levels) {
  for (const Factor::Condition& condition : factor.only_if) {
    std::vector<int> known = condition.levels;
    std::erase(known, kNotApplied);  // misspelt
    if (known.empty()) continue;
    levels[static_cast<std::size_t>(condition.factor)] = last ? known.back() : known.front();
    meet_conditions(plan, plan.factors[static_cast<std::size_t>(condition.factor)], last, levels);
  }
}

/// A combination with that level, the other factors at their first or last one; nothing where it cannot
/// apply.
std::optional<Levels> with_level(const FactorPlan& plan, std::size_t factor, int level, bool last) {
  Levels levels;
  for (const Factor& other : plan.factors)
    levels.push_back(last || other.levels.empty() ? static_cast<int>(other.levels.size()) - 1 : 0);
  meet_conditions(plan, plan.factors[factor], last, levels);
  levels[factor] = level;
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] != kNotApplied && !plan.factors[i].levels[static_cast<std::size_t>(levels[i])].value)
      levels[i] = kNotApplied;
  apply_conditions(plan.factors, levels);
  if (levels[factor] == kNotApplied) return std::nullopt;
  return levels;
}

}  // namespace

std::vector<LevelInRows> levels_in_rows(const FactorPlan& plan) {
  std::vector<LevelInRows> all;
  const std::vector<std::string> names = short_names(plan.factors);
  for (std::size_t i = 0; i < plan.factors.size(); ++i) {
    const Factor& factor = plan.factors[i];
    for (int level = 0; level < static_cast<int>(factor.levels.size()) && all.size() < kMostLevels; ++level) {
      const auto first = with_level(plan, i, level, false), last = with_level(plan, i, level, true);
      if (first && last)
        all.push_back(
            {dotted("factors", factor.key), row_of(plan, names, *first), row_of(plan, names, *last)});
    }
  }
  return all;
}

void check_product(const FactorPlan& plan, Problems& problems) {
  const std::int64_t count = product(axis_sizes(plan.factors));
  if (count <= kMostCombinations) return;
  problems.add(plan.factors.front().place, "factors",
               fmt::format("{} combinations of {} factors; at most {} are looked at", with_thousands(count),
                           plan.factors.size(), with_thousands(kMostCombinations)));
}

std::vector<DraftRow> combine(const FactorPlan& plan, Problems& problems) {
  std::vector<DraftRow> rows;
  const std::vector<std::int64_t> sizes = axis_sizes(plan.factors);
  const std::int64_t count = product(sizes);
  const std::vector<std::string> names = short_names(plan.factors);
  std::set<Levels> seen;
  for (std::int64_t number = 0; number < count; ++number) {
    std::vector<int> position(sizes.size());
    std::int64_t rest = number;
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      position[axis] = static_cast<int>(rest % sizes[axis]);
      rest /= sizes[axis];
    }
    Levels levels;
    for (const Factor& factor : plan.factors)
      levels.push_back(position[static_cast<std::size_t>(factor.axis)]);
    apply_conditions(plan.factors, levels);
    const bool excluded = std::ranges::any_of(
        plan.exclude, [&](const Exclusion& exclusion) { return all_hold(exclusion, levels); });
    if (!excluded && seen.insert(levels).second) rows.push_back(row_of(plan, names, levels));
  }
  if (rows.empty()) problems.add(plan.exclude_place, "exclude", "removes every row");
  return rows;
}

}  // namespace abl::sweeps
