// SPDX-License-Identifier: Apache-2.0
#include "views/picked_pivot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/nearest_name.h"
#include "storage/pivot_layout.h"
#include "views/comparison.h"
#include "views/convert.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::PivotFactor;
using storage::PivotRow;

constexpr std::size_t kMostPivotLevels = 50;  // of all factors together: each stands over columns of its own
constexpr std::size_t kMostFactors = 100, kLevelsSaid = 12;
constexpr std::size_t kMostKept = 4, kMostBytesKept = 8 << 20;

[[noreturn]] void reject(const std::string& message) { throw Error{Code::kInvalidArgument, message}; }

bool ends_with_name(const std::string& key, const std::string& name) {
  return key == name || key.ends_with("." + name);
}

/// By its name, or by whatever ending of its key no other has.
const PivotFactor& factor_named(const std::string& name, const std::vector<PivotFactor>& factors,
                                const std::string& sweep) {
  const PivotFactor* found = nullptr;
  std::vector<std::string> names;
  for (const PivotFactor& factor : factors) {
    names.push_back(factor.name);
    if (factor.name == name || factor.key == name) return factor;
  }
  for (const PivotFactor& factor : factors) {
    if (!ends_with_name(factor.key, name)) continue;
    if (found)
      reject(
          fmt::format("ambiguous factor '{}' of {}; expected {} or {}", name, sweep, found->key, factor.key));
    found = &factor;
  }
  if (found) return *found;
  if (factors.empty())
    reject(fmt::format("{} cannot be pivoted: its rows do not differ in any factor", sweep));
  for (const PivotFactor& factor : factors) names.push_back(factor.key);
  const std::string meant = did_you_mean(name, names);
  names.resize(factors.size());
  reject(fmt::format("{} cannot be pivoted by '{}'; expected {}{}", sweep, name, any_of(names), meant));
}

/// Says in each cell of the long form what it differs by from its own baseline, wherever that will stand.
void say_differences(v1::Table& table) {
  const std::vector<int> references = references_of(table);
  for (int row = 0; row < table.rows_size(); ++row) {
    const int other = references[static_cast<std::size_t>(row)];
    if (other < 0 || other == row) continue;
    for (int i = 0; i < table.columns_size(); ++i) {
      v1::Cell& cell = *table.mutable_rows(row)->mutable_cells(i);
      const v1::Cell& baseline = table.rows(other).cells(i);
      if (cell.has_comparison() && cell.has_mean() && baseline.has_mean())
        cell.set_difference(difference_text(table.columns(i), cell, cell.mean() - baseline.mean()));
    }
  }
}

/// What stands once for each level.
bool is_pivoted(const v1::Column& column) {
  return column.kind() != v1::Column::KIND_SETTING && column.kind() != v1::Column::KIND_COUNT;
}

}  // namespace

v1::TableFactors table_factors(storage::Database& db, const std::string& sweep) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const auto factors = storage::pivot_factors(storage::pivot_rows(db, sweep));
  v1::TableFactors message;
  for (const PivotFactor& factor : factors) {
    if (static_cast<std::size_t>(message.factors_size()) == kMostFactors) break;
    auto& said = *message.add_factors();
    said.set_name(factor.name);
    said.set_key(factor.key);
    said.set_levels(static_cast<std::uint32_t>(factor.levels.size()));
    for (std::size_t i = 0; i < std::min(factor.levels.size(), kLevelsSaid); ++i)
      said.add_first_levels(factor.levels[i]);
  }
  message.set_left_out(static_cast<std::uint32_t>(factors.size()) -
                       static_cast<std::uint32_t>(message.factors_size()));
  return message;
}

std::vector<std::string> factors_named(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, end - at);
    if (name.empty())
      reject(fmt::format("pivot: expected comma-separated factors, such as groups,layout; got '{}'", text));
    if (std::ranges::find(names, name) != names.end())
      reject(fmt::format("pivot: duplicate factor '{}'", name));
    names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

void pivoted_by(storage::Database& db, v1::Table& table, const std::vector<std::string>& names,
                StatisticsMemo* memo, v1::Table& message) {
  std::vector<PivotRow> rows;
  {
    const storage::Transaction snapshot{db, storage::Transaction::kRead};
    rows = storage::pivot_rows(db, table.sweep());
  }
  const std::vector<PivotFactor> factors = storage::pivot_factors(rows);
  std::vector<std::string> keys, shown;
  for (const std::string& name : names) {
    const PivotFactor& factor = factor_named(name, factors, table.sweep());
    if (std::ranges::find(keys, factor.key) != keys.end())
      reject(fmt::format("pivot: duplicate factor '{}' ({})", name, factor.key));
    keys.push_back(factor.key);
    shown.push_back(factor.name);
  }
  const storage::PivotLayout layout = storage::pivot_layout(rows, keys);
  if (layout.levels.size() > kMostPivotLevels)
    reject(fmt::format("pivot: {} levels of {} in {}; expected at most {}", layout.levels.size(),
                       fmt::join(shown, ", "), table.sweep(), kMostPivotLevels));
  say_differences(table);
  std::unordered_map<std::string, const storage::PivotPlace*> places;
  for (std::size_t i = 0; i < rows.size(); ++i) places.emplace(rows[i].id, &layout.rows[i]);
  for (v1::TableRow& row : *table.mutable_rows()) {
    const auto found = places.find(row.id());  // none of a row that was removed since
    row.set_line(found == places.end() ? row.id() : found->second->line);
    row.set_line_label(found == places.end() ? row.label() : found->second->line_label);
    row.set_level(found == places.end() ? "–" : found->second->level);
  }
  const bool was_pivoted = table.has_pivot();
  v1::Pivot& pivot = *table.mutable_pivot();
  pivot.Clear();
  pivot.set_by(fmt::format("{}", fmt::join(shown, ", ")));
  for (const std::string& key : keys) pivot.add_picked(key);
  for (const v1::Column& column : table.columns())
    if (is_pivoted(column)) pivot.add_columns(column.name());
  if (!was_pivoted && !table.baseline().empty())
    table.add_notes(fmt::format(
        "pivoted by {}: each cell is compared with {}, also across columns", pivot.by(),
        table.baselines().empty() ? "row " + table.baseline() : "the baseline of its row's group"));
  pivoted(table, layout.levels, memo, message);
}

std::shared_ptr<const PackedTable> PickedPivots::find(const std::shared_ptr<const PackedTable>& flat,
                                                      const std::vector<std::string>& factors) {
  const std::lock_guard lock{mutex_};
  std::erase_if(kept_, [](const Kept& kept) { return kept.of.expired(); });
  const auto kept = std::ranges::find_if(
      kept_, [&](const Kept& each) { return each.of.lock() == flat && each.factors == factors; });
  return kept == kept_.end() ? nullptr : kept->table;
}

std::shared_ptr<const PackedTable> PickedPivots::table(storage::Database& db,
                                                       const std::shared_ptr<const PackedTable>& flat,
                                                       const std::vector<std::string>& factors,
                                                       const std::shared_ptr<StatisticsMemo>& memo) {
  if (auto known = find(flat, factors)) return known;
  if (flat->rows() > kMostRows)
    throw Error{
        Code::kOutOfRange,
        fmt::format(
            "{} has {} rows; at most {} can be pivoted here: run 'ablate table {} --pivot {} --store FILE' "
            "for more",
            flat->head().sweep(), flat->rows(), kMostRows, flat->head().sweep(), fmt::join(factors, ","))};
  TableArena arena;
  v1::Table &whole = arena.new_table(), &message = arena.new_table();
  whole = flat->head();
  for (std::uint32_t i = 0; i < flat->rows(); ++i) *whole.add_rows() = flat->row(i);
  pivoted_by(db, whole, factors, memo.get(), message);
  auto made = std::make_shared<PackedTable>(std::move(message), memo);
  if (made->bytes() <= kMostBytesKept) {
    const std::lock_guard lock{mutex_};
    kept_.push_front({flat, factors, made});
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  return made;
}

}  // namespace abl::views
