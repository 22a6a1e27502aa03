// SPDX-License-Identifier: Apache-2.0
// What a table says of its columns together: expressions of others, pivots, what stands for each.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "protocol/column.h"
#include "protocol/expression.h"
#include "sweeps/attributes.h"
#include "sweeps/problems.h"

namespace abl::sweeps {
namespace {

using protocol::Expression;
using Kind = Column::Kind;

/// Where a byte of a scalar's text stands; of one that goes over several lines, its beginning.
Place place_in(const Node& node, std::size_t byte) {
  if (node.text.find('\n') != std::string::npos) return node.place;
  return {node.place.line, node.place.column + static_cast<int>(byte) + (node.quoted ? 1 : 0)};
}

/// A column that is an expression, as it was read.
struct Read {
  const Node* node = nullptr;
  std::string field;
  std::optional<Expression> expression;
};

/// Says what is wrong with the names in an expression.
void check_names(YamlReader& reader, const TableSpec& table, const Read& read) {
  std::vector<std::string> numbers, all;
  for (const Column& column : table.columns) {
    if (column.name.empty()) continue;
    all.push_back(column.name);
    if (column.kind != Kind::kSetting && column.kind != Kind::kPrinted) numbers.push_back(column.name);
  }
  for (const Expression::Name& name : read.expression->names()) {
    const auto problem = [&](const std::string& message, const std::string& nearest = {}) {
      reader.problems().add(place_in(*read.node, name.place), read.field, message, nearest);
    };
    const bool of_paper = name.of == Expression::Of::kPaper;
    const std::vector<std::string>& known = of_paper ? all : numbers;
    const auto column = std::ranges::find(table.columns, name.column, &Column::name);
    if (column == table.columns.end())
      problem(fmt::format("the table has no column '{}'; expected {}", name.column, any_of(known)),
              nearest_name(name.column, known));
    else if (!of_paper && (column->kind == Kind::kSetting || column->kind == Kind::kPrinted))
      problem(fmt::format(
          "column '{}' is {}, which is no number of ours; expected a metric, a count or an expression{}",
          name.column, column->kind == Kind::kSetting ? "a setting" : "the paper's alone",
          column->kind == Kind::kPrinted ? fmt::format(", or paper.{}", name.column) : ""));
    else if (name.of == Expression::Of::kBaseline && table.baseline.empty() && table.baselines.empty())
      problem("the table has no baseline; add table.baseline, the id of a row");
  }
  if (read.expression->names().empty())
    reader.problems().add(read.node->place, read.field, "names no column; expected an expression of columns");
}

/// "gain -> delta -> gain", where a column is made of itself.
std::string circle_from(const TableSpec& table, const std::vector<Read>& reads, std::size_t start) {
  std::vector<std::size_t> path;
  std::set<std::size_t> seen;
  std::string circle;
  const auto visit = [&](const auto& self, std::size_t column) -> bool {
    path.push_back(column);
    if (reads[column].expression)
      for (const Expression::Name& name : reads[column].expression->names()) {
        if (name.of == Expression::Of::kPaper) continue;
        const auto found = std::ranges::find(table.columns, name.column, &Column::name);
        if (found == table.columns.end()) continue;
        const auto next = static_cast<std::size_t>(found - table.columns.begin());
        if (next == start) return true;
        if (seen.insert(next).second && self(self, next)) return true;
      }
    path.pop_back();
    return false;
  };
  if (!visit(visit, start)) return {};
  for (const std::size_t column : path) circle += table.columns[column].name + " -> ";
  return circle + table.columns[start].name;
}

}  // namespace

void check_expressions(YamlReader& reader, const Node& columns, const TableSpec& table) {
  std::vector<Read> reads(table.columns.size());
  for (std::size_t i = 0; i < columns.items.size() && i < table.columns.size(); ++i) {
    if (table.columns[i].kind != Kind::kExpression) continue;
    Read& read = reads[i];
    read.node = columns.items[i].find("expression");
    read.field = fmt::format("table.columns.{}.expression", table.columns[i].name);
    if (!read.node || read.node->kind != Node::Kind::kScalar || read.node->text.empty()) continue;
    try {
      read.expression.emplace(read.node->text);
      check_names(reader, table, read);
    } catch (const protocol::ExpressionError& error) {
      reader.problems().add(place_in(*read.node, error.place), read.field, error.what(), error.nearest);
    }
  }
  for (std::size_t i = 0; i < reads.size(); ++i)
    if (const std::string circle = reads[i].expression ? circle_from(table, reads, i) : ""; !circle.empty())
      reader.problems().add(reads[i].node->place, reads[i].field,
                            fmt::format("the column is made of itself: {}", circle));
}

void read_pivot(YamlReader& reader, const Node& pivot, TableSpec& table) {
  if (!reader.is_mapping(pivot, "table.pivot")) return;
  reader.allow_only(pivot, "table.pivot", Part::kPivot);
  Pivot read;
  if (const Node* by = pivot.find("by"))
    read.by = reader.text(*by, "table.pivot.by").value_or("");
  else
    reader.problems().add(pivot.place, "table.pivot.by",
                          "missing; expected the dotted key of a factor, such as model.attention.layout");
  std::vector<std::string> names;
  for (const Column& column : table.columns)
    if (!column.name.empty()) names.push_back(column.name);
  if (const Node* columns = pivot.find("columns");
      columns && reader.is_sequence(*columns, "table.pivot.columns")) {
    if (columns->items.empty())
      reader.problems().add(columns->place, "table.pivot.columns",
                            "an empty list; expected " + any_of(names));
    for (const Node& item : columns->items) {
      const std::string name = reader.choice(item, "table.pivot.columns", names).value_or("");
      if (std::ranges::find(read.columns, name) != read.columns.end())
        reader.problems().add(item.place, "table.pivot.columns",
                              fmt::format("column '{}' is listed twice", name));
      read.columns.push_back(name);
    }
  } else if (!columns) {
    for (const Column& column : table.columns)
      if (column.kind != Kind::kSetting && column.kind != Kind::kCount) read.columns.push_back(column.name);
  }
  if (!read.by.empty()) table.pivot = std::move(read);
}

void check_pivot(const TableSpec& table, const std::vector<Row>& rows, const Node& pivot,
                 Problems& problems) {
  const Node* by = pivot.find("by");
  if (!table.pivot || !by || rows.empty()) return;
  std::set<std::string> levels, keys;
  for (const Row& row : rows) {
    std::string level;
    for (const auto& [key, value] : row.set) {
      const bool is_of_it = key == table.pivot->by || key.starts_with(table.pivot->by + ".");
      if (is_of_it) level += key + "=" + value + ",";
      if (!is_of_it) keys.insert(key);
    }
    levels.insert(level);
  }
  if (levels == std::set<std::string>{""})
    problems.add(by->place, "table.pivot.by",
                 fmt::format("no row sets '{}'; expected a key that rows differ in", by->text),
                 nearest_name(by->text, {keys.begin(), keys.end()}));
  else if (levels.size() < 2)
    problems.add(by->place, "table.pivot.by",
                 fmt::format("all rows have the same '{}'; expected a key that they differ in", by->text));
}

void read_show(YamlReader& reader, const Node& show, TableSpec& table) {
  if (!reader.is_sequence(show, "table.show")) return;
  for (const Node& item : show.items)
    if (const auto word = reader.choice(item, "table.show", names_of<protocol::Shown>())) {
      if (std::ranges::find(table.show, *word) != table.show.end())
        reader.problems().add(item.place, "table.show", fmt::format("'{}' is listed twice", *word));
      table.show.push_back(*word);
    }
  if (show.items.empty())
    reader.problems().add(show.place, "table.show",
                          "an empty list; expected " + any_of(names_of<protocol::Shown>()));
}

}  // namespace abl::sweeps
