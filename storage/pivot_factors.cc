// SPDX-License-Identifier: Apache-2.0
// What the rows of a table can be pivoted by.
#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "storage/pivot_layout.h"

namespace abl::storage {
namespace {

void add_once(std::vector<std::string>& texts, std::string_view text) {
  if (std::ranges::find(texts, text) == texts.end()) texts.emplace_back(text);
}

/// "groups" and "layout" of "groups=2,layout=block"; nothing of a name that no factor made.
void add_names_in(std::string_view id, std::vector<std::string>& names) {
  for (std::size_t start = 0; start < id.size();) {
    const std::size_t end = std::min(id.find(',', start), id.size());
    const std::string_view part = id.substr(start, end - start);
    if (const auto equals = part.find('='); equals != std::string_view::npos && equals > 0)
      add_once(names, part.substr(0, equals));
    start = end + 1;
  }
}

/// The dotted key that rows are called by: "model.attention" of "attention", where they set
/// model.attention.kernel.
std::string key_named(const std::string& name, const std::vector<std::string>& set) {
  for (const std::string& key : set)
    for (std::size_t end = key.find('.');; end = key.find('.', end + 1)) {
      const std::string_view whole = std::string_view{key}.substr(0, end);
      if (whole == name || whole.ends_with("." + name)) return std::string{whole};
      if (end == std::string::npos) break;
    }
  return name;
}

bool is_below(const std::string& key, const std::string& other) {
  return key == other || key.starts_with(other + ".");
}

/// The shortest ending of a key that no other of these has.
std::string shortest_name(const std::string& key, const std::vector<std::string>& keys) {
  for (std::size_t dot = key.rfind('.'); dot != std::string::npos && dot > 0; dot = key.rfind('.', dot - 1)) {
    const std::string ending = key.substr(dot);
    if (std::ranges::count_if(keys, [&](const std::string& other) {
          return other.ends_with(ending) || other == ending.substr(1);
        }) == 1)
      return ending.substr(1);
  }
  return key;
}

std::vector<std::string> levels_in(const std::vector<PivotRow>& rows, const std::string& key) {
  std::vector<std::string> levels;
  std::unordered_set<std::string> known;
  for (const PivotRow& row : rows)
    if (std::string level = pivot_level(row, key); known.insert(level).second)
      levels.push_back(std::move(level));
  return levels;
}

}  // namespace

std::vector<PivotFactor> pivot_factors(const std::vector<PivotRow>& rows) {
  std::vector<std::string> names, set, keys;
  std::set<std::string> known;
  for (const PivotRow& row : rows) {
    add_names_in(row.id, names);
    for (const auto& [key, value] : row.set)
      if (known.insert(key).second) set.push_back(key);
  }
  for (const std::string& name : names) add_once(keys, key_named(name, set));
  const std::vector<std::string> named = keys;
  for (const std::string& key : set)
    if (std::ranges::none_of(named, [&](const std::string& factor) { return is_below(key, factor); }))
      keys.push_back(key);
  std::vector<PivotFactor> factors;
  for (const std::string& key : keys) {
    auto levels = levels_in(rows, key);
    if (levels.size() > 1)
      factors.push_back({.name = shortest_name(key, keys), .key = key, .levels = std::move(levels)});
  }
  return factors;
}

}  // namespace abl::storage
