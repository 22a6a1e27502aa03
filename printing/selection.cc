// SPDX-License-Identifier: Apache-2.0
#include "printing/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/nearest_name.h"
#include "printing/sheet.h"

namespace abl::printing {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;

/// What rows are ordered by; nothing where one has none.
using Key = std::variant<std::monostate, double, std::string>;

constexpr std::string_view kPaperEnding = ".paper";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Of letters the ASCII ones alone: other places that choose rows have to come to the same.
std::string lower(std::string_view text) {
  std::string result{text};
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// The digits from `at` on without leading zeros; moves `at` behind them.
std::string_view take_digits(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

/// "lr=2" before "lr=10", whatever the case. Returns: below 0, 0 or above.
int compare_naturally(std::string_view a, std::string_view b) {
  const std::string x = lower(a), y = lower(b);
  std::size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    if (is_digit(x[i]) && is_digit(y[j])) {
      const auto left = take_digits(x, i), right = take_digits(y, j);
      if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
      if (const int order = left.compare(right); order != 0) return order;
    } else {
      const auto left = static_cast<unsigned char>(x[i++]), right = static_cast<unsigned char>(y[j++]);
      if (left != right) return left < right ? -1 : 1;
    }
  }
  return static_cast<int>(x.size() - i > 0) - static_cast<int>(y.size() - j > 0);
}

/// The number that a printed value begins with: 79.79 of "79.79 ± 0.12".
Key number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return {};
  return number;
}

Key key_of(const Column& column, const Cell& cell, bool paper) {
  if (paper) return number_in(cell.paper());
  if (column.kind() == Column::KIND_SETTING) return cell.text();
  if (!cell.has_mean() || !std::isfinite(cell.mean())) return {};
  return cell.mean();
}

int compare(const Key& a, const Key& b) {
  if (const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b); x && y)
    return *x < *y ? -1 : static_cast<int>(*x > *y);
  return compare_naturally(std::get<std::string>(a), std::get<std::string>(b));
}

[[noreturn]] void reject(const Table& table, const std::string& name) {
  std::vector<std::string> names;
  for (const Column& column : table.columns()) names.push_back(column.name());
  throw Error{Code::kInvalidArgument,
              fmt::format("the table of {} has no column '{}'; expected {}{}", table.sweep(), name,
                          any_of(names), did_you_mean(name, names))};
}

std::optional<int> place_of(const Table& table, std::string_view name) {
  for (int i = 0; i < table.columns_size(); ++i)
    if (table.columns(i).name() == name) return i;
  return std::nullopt;
}

void sort(Table& table, const std::string& by) {
  const bool descending = by.starts_with('-');
  const std::string name = by.substr(descending ? 1 : 0);
  bool paper = false;
  auto column = place_of(table, name);
  if (!column && name.ends_with(kPaperEnding)) {
    column = place_of(table, name.substr(0, name.size() - kPaperEnding.size()));
    paper = true;
  }
  if (!column && name != "row") reject(table, name);
  std::vector<std::pair<Key, TableRow*>> rows;
  for (TableRow& row : *table.mutable_rows())
    rows.emplace_back(column ? key_of(table.columns(*column), row.cells(*column), paper) : Key{row.id()},
                      &row);
  std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) {
    const bool has_a = a.first.index() != 0, has_b = b.first.index() != 0;
    if (!has_a || !has_b) return has_a && !has_b;
    return descending ? compare(a.first, b.first) > 0 : compare(a.first, b.first) < 0;
  });
  google::protobuf::RepeatedPtrField<TableRow> sorted;
  sorted.Reserve(table.rows_size());
  for (const auto& [key, row] : rows) sorted.Add(std::move(*row));
  table.mutable_rows()->Swap(&sorted);
}

bool is_complete(const Table& table, const TableRow& row) {
  for (int i = 0; i < table.columns_size(); ++i)
    if (is_metric(table.columns(i)) && (row.cells(i).n() < row.cells(i).of() || row.cells(i).unfilled() > 0))
      return false;
  return true;
}

/// The words of a text, in small letters.
std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  const std::string small = lower(text);
  for (std::size_t at = 0; (at = small.find_first_not_of(" \t\n", at)) != std::string::npos;) {
    const std::size_t end = std::min(small.find_first_of(" \t\n", at), small.size());
    words.push_back(small.substr(at, end - at));
    at = end;
  }
  return words;
}

bool has_words(const Table& table, const TableRow& row, const std::vector<std::string>& words) {
  std::string text = row.id() + "\n" + row.label() + "\n" + row.group();
  for (int i = 0; i < table.columns_size(); ++i)
    if (table.columns(i).kind() == Column::KIND_SETTING) text += "\n" + row.cells(i).text();
  text = lower(text);
  return std::ranges::all_of(words,
                             [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

/// Removes the rows that are not chosen.
template <class Chosen>
void keep_rows(Table& table, const Chosen& chosen) {
  auto& rows = *table.mutable_rows();
  const auto end =
      std::remove_if(rows.begin(), rows.end(), [&](const TableRow& row) { return !chosen(row); });
  rows.erase(end, rows.end());
}

void leave_out(Table& table, const std::vector<std::string>& names) {
  std::vector<bool> gone(static_cast<std::size_t>(table.columns_size()));
  for (const std::string& name : names) {
    const auto place = place_of(table, name);
    if (!place) reject(table, name);
    gone[static_cast<std::size_t>(*place)] = true;
  }
  const auto thin = [&](auto& all) {
    int kept = 0;
    for (int i = 0; i < all.size(); ++i)
      if (!gone[static_cast<std::size_t>(i)]) all.SwapElements(kept++, i);
    all.DeleteSubrange(kept, all.size() - kept);
  };
  for (TableRow& row : *table.mutable_rows()) thin(*row.mutable_cells());
  thin(*table.mutable_columns());
}

}  // namespace

void select(Table& table, const Selection& selection) {
  if (!selection.sort.empty()) sort(table, selection.sort);
  if (const auto& only = selection.only)
    keep_rows(table, [&](const TableRow& row) {
      return only->contains(row.id()) ||
             std::ranges::any_of(row.cells(), [&](const Cell& cell) { return only->contains(cell.row()); });
    });
  if (selection.complete) keep_rows(table, [&](const TableRow& row) { return is_complete(table, row); });
  if (const auto words = words_in(selection.find); !words.empty())
    keep_rows(table, [&](const TableRow& row) { return has_words(table, row, words); });
  if (!selection.without.empty()) leave_out(table, selection.without);
}

}  // namespace abl::printing
