// SPDX-License-Identifier: Apache-2.0
#include "printing/row_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "views/comparison.h"

namespace abl::printing {
namespace {

using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;

constexpr int kLeastOfAnId = 8, kLeastOfALabel = 10, kLeastOfALevel = 8;

/// Whether a factor of an id, "layout", is this setting: "model.attention.layout".
bool is_key(const std::string& setting, const std::string& factor) {
  return setting == factor || setting.ends_with("." + factor);
}

/// Whether a label is the id in other signs: as factors make it.
bool repeats(const TableRow& row) {
  const auto letters = [](const std::string& text) {
    std::string kept;
    for (const char c : text)
      if (c != ' ' && c != '-' && c != '/' && c != ',') kept += c;
    return kept;
  };
  return row.label().empty() || letters(row.label()) == letters(row.id());
}

}  // namespace

int least_of_names(const std::vector<std::string>& names, int least) {
  constexpr int kMost = 40;
  std::vector<std::string_view> sorted{names.begin(), names.end()};
  std::ranges::sort(sorted);
  int longest = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    longest = std::max(longest, static_cast<int>(sorted[i].size()));
    if (i == 0 || sorted[i] == sorted[i - 1]) continue;
    const auto same = std::ranges::mismatch(sorted[i], sorted[i - 1]).in1 - sorted[i].begin();
    least = std::max(least, static_cast<int>(same) + 2);  // one that differs, and the ellipsis
  }
  return std::min({least, std::max(longest, 1), kMost});
}

RowNames::RowNames(const Table& table, bool with_settings) {
  for (const auto& row : table.rows()) ids_.push_back(row.id());
  factors_ = read_factors(table, with_settings);
  if (!factors_) read_labels(table);
}

bool RowNames::read_factors(const Table& table, bool with_settings) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> factors;
  std::map<std::string, std::set<std::string>> seen;
  for (const auto& row : table.rows()) {
    const auto levels = views::levels_of(row.id());
    if (!levels || !repeats(row)) return false;
    for (const auto& [factor, level] : *levels)
      if (std::ranges::find(factors, factor) == factors.end()) factors.push_back(factor);
    rows.emplace_back(levels->begin(), levels->end());
  }
  for (const auto& factor : factors)
    for (auto& row : rows) seen[factor].insert(row[factor]);  // "" where it does not apply
  std::erase_if(factors, [&](const std::string& factor) { return seen[factor].size() < 2; });
  if (factors.empty()) return false;
  const auto fill = [&](std::vector<Grid::Column>& columns, std::vector<std::vector<std::string>>& cells) {
    for (const auto& factor : factors)
      columns.push_back(
          {.heading = factor,
           .least = least_of_names({seen[factor].begin(), seen[factor].end()}, kLeastOfALevel)});
    for (auto& row : rows) {
      auto& line = cells.emplace_back();
      for (const auto& factor : factors) line.push_back(row[factor]);
    }
  };
  fill(short_columns_, short_cells_);
  // a setting that the table shows anyway needs no second column
  std::erase_if(factors, [&](const std::string& factor) {
    for (int i = 0; with_settings && i < table.columns_size(); ++i)
      if (table.columns(i).kind() == Column::KIND_SETTING && is_key(table.columns(i).source(), factor) &&
          std::ranges::all_of(rows, [&, at = 0](auto& row) mutable {
            return row[factor] == table.rows(at++).cells(i).text();
          }))
        return shown_by_.insert(i), true;
    return false;
  });
  if (factors.empty()) return false;
  fill(columns_, cells_);
  return true;
}

void RowNames::read_labels(const Table& table) {
  const bool labelled = std::ranges::any_of(table.rows(), [](const TableRow& row) { return !repeats(row); });
  columns_.push_back({.heading = "row", .least = least_of_names(ids_, kLeastOfAnId)});
  if (labelled) columns_.push_back({.heading = "label", .least = kLeastOfALabel});
  for (const auto& row : table.rows()) {
    auto& cells = cells_.emplace_back();
    cells.push_back(row.id());
    if (labelled) cells.push_back(repeats(row) ? "" : row.label());
  }
  if (!short_columns_.empty()) return;  // factors, which the table's own columns show
  short_columns_.push_back(columns_.front());
  for (const std::string& id : ids_) short_cells_.push_back({id});
}

std::vector<std::string> RowNames::short_cells(const std::string& id) const {
  const auto row = std::ranges::find(ids_, id);
  if (row != ids_.end()) return short_cells_[static_cast<std::size_t>(row - ids_.begin())];
  std::vector<std::string> cells{id};
  cells.resize(short_columns_.size());
  return cells;
}

}  // namespace abl::printing
