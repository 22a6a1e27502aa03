// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "protocol/expression.h"
#include "protocol/number.h"
#include "statistics/mean_sd.h"
#include "storage/table.h"

namespace abl::storage {

using protocol::Expression;
using Of = protocol::Expression::Of;

struct ExpressionColumns::One {
  std::size_t column = 0;
  std::optional<Expression> expression;
  std::string problem;                                // why there is none
  std::vector<std::optional<std::size_t>> sources{};  // of its names: the columns
};

namespace {

/// What a cell gives to an expression: a value for each seed, one for all, or why there is none.
struct Operand {
  std::map<std::int64_t, CellValue> seeds;
  double all = 0;
  bool per_seed = false;
  std::uint32_t before_mend = 0;
  bool older = false;  // its values are of an older version of the command
  std::string older_version, missing;
};

/// What is to be said of a value is to be said of what is made of it; of a mark it is enough that one has it.
void mark(Cell& cell, const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    cell.before_mend = std::max(cell.before_mend, std::min(operand.before_mend, cell.n));
    if (operand.older) cell.older = cell.n, cell.older_version = operand.older_version;
  }
}

Operand paper_operand(const Cell& cell, double unit) {
  Operand operand;
  if (const auto printed = protocol::printed_number(cell.paper))
    operand.all = printed->value * unit;
  else
    operand.missing = cell.paper.empty()
                          ? "the paper has no value here"
                          : fmt::format("the paper prints '{}', which is no number", cell.paper);
  return operand;
}

Operand cell_operand(const Cell& cell, bool per_seed) {
  Operand operand{.per_seed = per_seed,
                  .before_mend = cell.before_mend,
                  .older = cell.older > 0,
                  .older_version = cell.older_version};
  if (!cell.diverged.empty())
    operand.missing = cell.missing;
  else if (!cell.mean || cell.n == 0)
    operand.missing = cell.missing.empty() ? "no value" : cell.missing;
  else if (!std::isfinite(*cell.mean))
    operand.missing = "its value is not finite";
  if (!operand.missing.empty()) return operand;
  operand.all = *cell.mean;
  if (per_seed)
    for (const CellValue& value : cell.values) operand.seeds.emplace(value.seed, value);
  return operand;
}

/// Of seeds that all of the operands have; a value that cannot be computed leaves the cell without any.
Cell per_seed_cell(const Expression& expression, const std::vector<Operand>& operands, std::uint32_t of) {
  Cell cell{.of = of};
  const auto leading = std::ranges::find_if(operands, &Operand::per_seed);
  std::vector<double> given(operands.size()), values;
  for (const auto& [seed, value] : leading->seeds) {
    CellValue result{.run = value.run, .trial = value.trial, .seed = seed};
    bool complete = true;
    for (std::size_t i = 0; i < operands.size() && complete; ++i) {
      const auto own = operands[i].seeds.find(seed);
      complete = !operands[i].per_seed || own != operands[i].seeds.end();
      if (!complete) break;
      given[i] = operands[i].per_seed ? own->second.value : operands[i].all;
      if (operands[i].per_seed) result.packed_with = std::max(result.packed_with, own->second.packed_with);
    }
    if (!complete) continue;
    const Expression::Result computed = expression.value(given);
    if (!computed.why.empty()) return {.of = of, .missing = fmt::format("seed {}: {}", seed, computed.why)};
    result.value = computed.value;
    cell.packed += result.packed_with > 0;
    cell.values.push_back(result);
    values.push_back(result.value);
  }
  cell.n = static_cast<std::uint32_t>(values.size());
  if (values.empty()) {
    cell.missing = "no seed has all that it is made of";
    return cell;
  }
  const statistics::MeanSd spread = statistics::mean_sd(values);
  cell.mean = spread.mean, cell.sd = spread.sd;
  mark(cell, operands);
  return cell;
}

Cell single_cell(const Expression& expression, const std::vector<Operand>& operands) {
  std::vector<double> given;
  Cell cell{.of = 1};
  for (const Operand& operand : operands) given.push_back(operand.all);
  const Expression::Result computed = expression.value(given);
  if (!computed.why.empty()) return {.of = 1, .missing = computed.why};
  cell.mean = computed.value, cell.n = 1;
  mark(cell, operands);
  return cell;
}

}  // namespace

ExpressionColumns::ExpressionColumns(const std::vector<Column>& columns) {
  std::vector<std::shared_ptr<One>> open;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    per_seed_.push_back(columns[i].kind == Column::Kind::kMetric);
    if (columns[i].kind != Column::Kind::kExpression) continue;
    auto one = std::make_shared<One>(One{.column = i});
    try {
      one->expression.emplace(columns[i].source);
      for (const auto& name : one->expression->names()) {
        const auto source = std::ranges::find(columns, name.column, &Column::name);
        one->sources.push_back(source == columns.end()
                                   ? std::nullopt
                                   : std::optional{static_cast<std::size_t>(source - columns.begin())});
      }
    } catch (const protocol::ExpressionError& error) {
      one->problem = error.what();
    }
    open.push_back(std::move(one));
  }
  const auto is_open = [&](std::size_t column) {
    return std::ranges::any_of(open, [&](const auto& one) { return one->column == column; });
  };
  while (!open.empty()) {
    const auto next = std::ranges::find_if(open, [&](const auto& one) {
      for (std::size_t i = 0; i < one->sources.size(); ++i)
        if (one->sources[i] && one->expression->names()[i].of != Of::kPaper && is_open(*one->sources[i]))
          return false;
      return true;
    });
    if (next == open.end()) {  // circles, which no sweep file may have
      for (const auto& one : open)
        one->problem = "columns that are made of each other", one->expression.reset();
      columns_.insert(columns_.end(), open.begin(), open.end());
      return;
    }
    const One& one = **next;
    for (std::size_t i = 0; i < one.sources.size(); ++i)
      if (one.sources[i] && one.expression->names()[i].of == Of::kRow && per_seed_[*one.sources[i]])
        per_seed_[one.column] = true;
    columns_.push_back(*next);
    open.erase(next);
  }
}

void ExpressionColumns::evaluate(Table& table, const std::set<std::size_t>& rows,
                                 const std::vector<std::optional<std::size_t>>& baselines,
                                 const std::vector<std::optional<protocol::Unit>>& units,
                                 std::uint32_t seeds) const {
  for (const auto& one : columns_) {
    for (const std::size_t row : rows) {
      Cell& cell = table.rows[row].cells[one->column];
      std::string paper = std::move(cell.paper);
      const auto printed = cell.mark;
      std::uint32_t of = per_seed_[one->column] ? seeds : 1;
      for (std::size_t i = 0; i < one->sources.size() && per_seed_[one->column]; ++i)
        if (one->sources[i] && one->expression->names()[i].of == Of::kRow && per_seed_[*one->sources[i]])
          of = table.rows[row].cells[*one->sources[i]].of;  // as many as this row gets
      Cell made{.of = of, .missing = one->problem};
      std::vector<Operand> operands;
      for (std::size_t i = 0; i < one->sources.size() && made.missing.empty(); ++i) {
        const Expression::Name& name = one->expression->names()[i];
        Operand operand;
        if (!one->sources[i])
          operand.missing = "the table has no such column";
        else if (name.of == Of::kPaper)
          operand = *one->sources[i] == one->column
                        ? paper_operand({.paper = paper}, unit_factor(units[*one->sources[i]]))
                        : paper_operand(table.rows[row].cells[*one->sources[i]],
                                        unit_factor(units[*one->sources[i]]));
        else if (name.of == Of::kRow)
          operand = cell_operand(table.rows[row].cells[*one->sources[i]], per_seed_[*one->sources[i]]);
        else if (baselines[row])
          operand = cell_operand(table.rows[*baselines[row]].cells[*one->sources[i]], false);
        else
          operand.missing = table.rows[row].level.empty()
                                ? "the row has no baseline"
                                : fmt::format("the baseline has no row at '{}'", table.rows[row].level);
        if (!operand.missing.empty()) made.missing = fmt::format("{}: {}", name.text(), operand.missing);
        operands.push_back(std::move(operand));
      }
      if (made.missing.empty())
        made = per_seed_[one->column] ? per_seed_cell(*one->expression, operands, of)
                                      : single_cell(*one->expression, operands);
      cell = std::move(made);
      cell.paper = std::move(paper);
      cell.mark = printed;
    }
  }
}

}  // namespace abl::storage
