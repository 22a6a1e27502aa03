// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sweeps/rows.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// The largest product of factors that is looked at before `only_if` and `exclude` take effect.
inline constexpr std::int64_t kMostCombinations = 1'000'000;

struct Level {
  std::string text;             ///< its label, or its value as people read it
  const Node* value = nullptr;  ///< none where it is a mapping of another form
  nlohmann::json json;          ///< for comparing
  Place place;
};

/// A dotted key that varies.
struct Factor {
  std::string key;
  Place place;
  std::vector<Level> levels;
  int axis = 0;  ///< factors of one axis (`zip`) vary together
  /// `only_if`: the other factor and the levels with which this one applies; otherwise it is left at the
  /// base.
  struct Condition {
    int factor = 0;
    std::vector<int> levels;
  };
  std::vector<Condition> only_if;
};

/// Some levels of some factors: a combination that has all of them is left out.
using Exclusion = std::vector<Factor::Condition>;

struct FactorPlan {
  std::vector<Factor> factors;
  std::vector<Exclusion> exclude;
  Place exclude_place;
};

/// Reads `factors`, `zip`, `only_if` and `exclude` of a sweep file.
FactorPlan read_factors(YamlReader& reader, const Node& root);

/// The keys that `zip` of a sweep file lets vary together with `key`, without it; none where it is wrong.
std::vector<std::string> zipped_with(const Node& root, const std::string& key);

/// Counts the combinations by multiplication, before any is built; too many are a problem.
void check_product(const FactorPlan& plan, Problems& problems);

/// One row for each combination of a plan without problems, the first factor varying slowest.
std::vector<DraftRow> combine(const FactorPlan& plan, Problems& problems);

/// The levels of a plan that cannot be combined: each in two rows, with the first and with the last levels of
/// the other factors that let its own apply. Levels that nothing lets apply are left out, and those beyond
/// some thousands.
std::vector<LevelInRows> levels_in_rows(const FactorPlan& plan);

}  // namespace abl::sweeps
