// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "storage/table.h"

namespace abl::storage {
namespace {

/// What a row says of a pivot: its level, all else that it sets, and its names without the level.
struct Placed {
  std::string level, others, id, label;
};

/// "layout" and "attention.layout" are names of model.attention.layout.
bool names_key(std::string_view name, std::string_view key) {
  return key == name ||
         (key.size() > name.size() && key.ends_with(name) && key[key.size() - name.size() - 1] == '.');
}

/// Takes "layout=block" out of "groups=2,layout=block", where `by` is called so; returns its level.
std::optional<std::string> take_level(std::string& name, const std::string& by) {
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find(',', start), name.size());
    std::string_view part = std::string_view{name}.substr(start, end - start);
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (const auto equals = part.find('=');
        equals != std::string_view::npos && names_key(part.substr(0, equals), by)) {
      std::string level{part.substr(equals + 1)};
      if (start > 0)
        name.erase(start - 1, end - start + 1);
      else
        name.erase(0, std::min(end + 1, name.size()));
      while (name.starts_with(' ')) name.erase(0, 1);
      return level;
    }
    start = end + 1;
  }
  return std::nullopt;
}

Placed placed(const TableRow& row, const std::string& set_json, const std::string& by) {
  Placed place{.id = row.id, .label = row.label};
  const auto named = take_level(place.id, by);
  take_level(place.label, by);
  nlohmann::json others = nlohmann::json::object();
  std::string own, below;
  const auto set = nlohmann::json::parse(set_json, nullptr, false);
  if (set.is_object())
    for (const auto& [key, value] : set.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (key == by)
        own = text;
      else if (key.starts_with(by + "."))
        below += (below.empty() ? "" : ", ") + key.substr(by.size() + 1) + "=" + text;
      else
        others[key] = text;
    }
  place.level = named ? *named : below.empty() ? own : below;
  place.others = row.group + "\n" + others.dump();
  return place;
}

/// What names begin with alike, as far as whole words go.
std::string common_name(const std::string& a, const std::string& b) {
  if (a == b) return a;
  const auto is_end = [](const std::string& text, std::size_t at) {
    return at >= text.size() || std::string_view{" ,-_./(="}.find(text[at]) != std::string_view::npos;
  };
  std::size_t same = 0;
  while (same < std::min(a.size(), b.size()) && a[same] == b[same]) ++same;
  while (same > 0 && !(is_end(a, same) && is_end(b, same))) --same;
  std::string name = a.substr(0, same);
  while (!name.empty() && std::string_view{" ,-_./(="}.find(name.back()) != std::string_view::npos)
    name.pop_back();
  return name;
}

/// A row is compared with the one of its own level in the baseline's line; with none where that line lacks
/// it.
void compare_within_levels(Table& table) {
  std::map<std::string_view, std::string_view> lines;                              // row id -> line
  std::map<std::pair<std::string_view, std::string_view>, std::string_view> rows;  // line, level -> row id
  for (const TableRow& row : table.rows) {
    lines.emplace(row.id, row.line);
    rows.emplace(std::pair{std::string_view{row.line}, std::string_view{row.level}}, row.id);
  }
  for (TableRow& row : table.rows) {
    const auto line = lines.find(row.baseline);
    if (line == lines.end()) continue;
    const auto of_level = rows.find({line->second, row.level});
    row.baseline = of_level == rows.end() ? std::string{} : std::string{of_level->second};
  }
}

}  // namespace

void place_in_pivot(Table& table, const std::vector<std::string>& sets) {
  const auto attributes = nlohmann::json::parse(table.attributes_json, nullptr, false);
  if (!attributes.is_object() || !attributes.contains("pivot") || !attributes["pivot"].is_object()) return;
  const auto by = attributes["pivot"].find("by");
  if (by == attributes["pivot"].end() || !by->is_string()) return;  // of another release
  struct Line {
    std::string id, label;  // what its rows have in common
    std::set<std::string> levels;
    std::vector<std::size_t> rows;
  };
  std::vector<Line> lines;
  std::map<std::string, std::vector<std::size_t>>
      places;  // of lines, by what else they set: several where a level is there twice
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    TableRow& row = table.rows[i];
    const Placed place = placed(row, i < sets.size() ? sets[i] : "", by->get<std::string>());
    row.level = place.level.empty() ? "–" : place.level;
    auto& known = places[place.others];
    auto line =
        std::ranges::find_if(known, [&](std::size_t l) { return !lines[l].levels.contains(row.level); });
    if (line == known.end()) {
      line = known.insert(known.end(), lines.size());
      lines.push_back({.id = place.id, .label = place.label});
    }
    Line& of = lines[*line];
    of.levels.insert(row.level);
    of.rows.push_back(i);
    of.id = common_name(of.id, place.id);
    of.label = common_name(of.label, place.label);
  }
  std::map<std::string, std::size_t> ids;
  std::set<std::string> taken;
  for (const Line& line : lines) ++ids[line.id];
  for (Line& line : lines) {
    if (line.id.empty() && lines.size() == 1)
      line.id = "all";
    else if (line.id.empty() || ids[line.id] > 1)
      line.id = table.rows[line.rows.front()].id;
    while (!taken.insert(line.id).second) line.id += "'";
    for (const std::size_t row : line.rows) {
      table.rows[row].line = line.id;
      table.rows[row].line_label = line.label.empty() ? line.id : line.label;
    }
  }
  compare_within_levels(table);
}

}  // namespace abl::storage
