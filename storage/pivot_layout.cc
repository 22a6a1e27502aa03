// SPDX-License-Identifier: Apache-2.0
#include "storage/pivot_layout.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "storage/sweep_store.h"
#include "storage/table.h"

namespace abl::storage {
namespace {

constexpr const char* kNoLevel = "–";  // the level of a row without the factor

/// What a row says of a pivot: its levels, all else that it sets, and its names without the levels.
struct Placed {
  std::vector<std::string> levels;
  std::string others, id, label;
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

/// Whether a key is that of a factor, or one below it: a level may be a mapping.
bool is_of_factor(const std::string& key, const std::string& by) {
  return key.starts_with(by) && (key.size() == by.size() || key[by.size()] == '.');
}

/// The level of one factor; takes it out of the names.
std::string take_level(const PivotRow& row, const std::string& by, std::string& id, std::string& label) {
  const auto named = take_level(id, by);
  take_level(label, by);
  std::string own, below;
  for (const auto& [key, value] : row.set)
    if (key == by)
      own = value;
    else if (is_of_factor(key, by))
      below += (below.empty() ? "" : ", ") + key.substr(by.size() + 1) + "=" + value;
  const std::string& level = named ? *named : below.empty() ? own : below;
  return level.empty() ? kNoLevel : level;
}

Placed placed_by(const PivotRow& row, const std::vector<std::string>& by,
                 const std::vector<std::string>& with) {
  Placed place{.id = row.id, .label = row.label};
  for (const std::string& key : by) place.levels.push_back(take_level(row, key, place.id, place.label));
  for (const std::string& key : with) take_level(row, key, place.id, place.label);
  nlohmann::json others = nlohmann::json::object();
  for (const auto& [key, value] : row.set) {
    const auto is_its = [&](const std::string& factor) { return is_of_factor(key, factor); };
    if (std::ranges::none_of(by, is_its) && std::ranges::none_of(with, is_its)) others[key] = value;
  }
  place.others = row.group + "\n" + others.dump();
  return place;
}

std::string together(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

/// Levels of all factors together, by those of the first factor, then of the second, each in the order of the
/// rows.
std::vector<std::string> levels_in_order(const std::vector<Placed>& places, std::size_t factors) {
  std::vector<std::map<std::string, std::size_t>> ranks(factors);
  std::map<std::vector<std::size_t>, std::string> sorted;
  for (const Placed& place : places) {
    std::vector<std::size_t> rank;
    for (std::size_t i = 0; i < factors; ++i)
      rank.push_back(ranks[i].try_emplace(place.levels[i], ranks[i].size()).first->second);
    sorted.emplace(std::move(rank), together(place.levels));
  }
  std::vector<std::string> levels;
  std::set<std::string_view> known;  // "a, b" may be of one factor and of two
  for (const auto& [rank, level] : sorted)
    if (known.insert(level).second) levels.push_back(level);
  return levels;
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

PivotRow pivot_row(std::string id, std::string label, std::string group, const std::string& set_json) {
  PivotRow row{.id = std::move(id), .label = std::move(label), .group = std::move(group)};
  const auto set = nlohmann::json::parse(set_json, nullptr, false);
  if (set.is_object())
    for (const auto& [key, value] : set.items())
      row.set.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  return row;
}

std::string pivot_level(const PivotRow& row, const std::string& by) {
  std::string id = row.id, label = row.label;
  return take_level(row, by, id, label);
}

std::vector<PivotRow> pivot_rows(Database& db, const std::string& sweep) {
  return db
      .prepared(
          "SELECT id, label, heading, set_json FROM sweep_row WHERE sweep_id = :sweep AND other_sweep = '' "
          "ORDER BY position")
      .bind(":sweep", SweepStore{db}.get_brief(sweep).id)
      .all(
          [](const Statement& row) { return pivot_row(row.text(0), row.text(1), row.text(2), row.text(3)); });
}

PivotLayout pivot_layout(const std::vector<PivotRow>& rows, const std::vector<std::string>& by,
                         const std::vector<std::string>& with) {
  struct Line {
    std::string id, label;  // what its rows have in common
    std::set<std::string> levels;
    std::vector<std::size_t> rows;
  };
  std::vector<Placed> places;
  PivotLayout layout;
  std::vector<Line> lines;
  std::map<std::string, std::vector<std::size_t>>
      known_lines;  // by what else they set: several where a level is there twice
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Placed& place = places.emplace_back(placed_by(rows[i], by, with));
    const std::string level = together(place.levels);
    layout.rows.push_back({.level = level});
    auto& known = known_lines[place.others];
    auto line = std::ranges::find_if(known, [&](std::size_t l) { return !lines[l].levels.contains(level); });
    if (line == known.end()) {
      line = known.insert(known.end(), lines.size());
      lines.push_back({.id = place.id, .label = place.label});
    }
    Line& of = lines[*line];
    of.levels.insert(level);
    of.rows.push_back(i);
    of.id = common_name(of.id, place.id);
    of.label = common_name(of.label, place.label);
  }
  layout.levels = levels_in_order(places, by.size());
  std::map<std::string, std::size_t> ids;
  std::set<std::string> taken;
  for (const Line& line : lines) ++ids[line.id];
  for (Line& line : lines) {
    if (line.id.empty() && lines.size() == 1)
      line.id = "all";
    else if (line.id.empty() || ids[line.id] > 1)
      line.id = rows[line.rows.front()].id;
    while (!taken.insert(line.id).second) line.id += "'";
    for (const std::size_t row : line.rows) {
      layout.rows[row].line = line.id;
      layout.rows[row].line_label = line.label.empty() ? line.id : line.label;
    }
  }
  return layout;
}

void place_in_pivot(Table& table, const std::vector<std::string>& sets) {
  const auto attributes = nlohmann::json::parse(table.attributes_json, nullptr, false);
  if (!attributes.is_object() || !attributes.contains("pivot") || !attributes["pivot"].is_object()) return;
  const auto by = attributes["pivot"].find("by");
  if (by == attributes["pivot"].end() || !by->is_string()) return;  // of another release
  std::vector<PivotRow> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TableRow& row = table.rows[i];
    rows.push_back(pivot_row(row.id, row.label, row.group, i < sets.size() ? sets[i] : ""));
  }
  std::vector<std::string> with;
  if (const auto keys = attributes["pivot"].find("with");
      keys != attributes["pivot"].end() && keys->is_array())
    for (const auto& key : *keys)
      if (key.is_string()) with.push_back(key.get<std::string>());
  PivotLayout layout = pivot_layout(rows, {by->get<std::string>()}, with);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].line = std::move(layout.rows[i].line);
    table.rows[i].line_label = std::move(layout.rows[i].line_label);
    table.rows[i].level = std::move(layout.rows[i].level);
  }
  compare_within_levels(table);
}

}  // namespace abl::storage
