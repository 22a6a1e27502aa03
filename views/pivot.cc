// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "views/comparison.h"
#include "views/convert.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

/// The lines and levels of a table, in the order of its rows, and which row stands where.
struct Layout {
  /// `in_order`: levels that come first, so.
  Layout(const v1::Table& table, std::vector<std::string> in_order) : levels{std::move(in_order)} {
    std::unordered_map<std::string, std::size_t> known_lines, known_levels;
    for (std::size_t i = 0; i < levels.size(); ++i) known_levels.emplace(levels[i], i);
    for (int i = 0; i < table.rows_size(); ++i) {
      const v1::TableRow& row = table.rows(i);
      const auto [line, is_new_line] = known_lines.try_emplace(row.line(), lines.size());
      if (is_new_line) lines.emplace_back();
      const auto [level, is_new_level] = known_levels.try_emplace(row.level(), levels.size());
      if (is_new_level) levels.push_back(row.level());
      lines[line->second].emplace_back(level->second, i);
      line_of.emplace(row.id(), row.line());
    }
  }
  /// The row of a line that has a level.
  std::optional<int> row(std::size_t line, std::size_t level) const {
    for (const auto& [of, row] : lines[line])
      if (of == level) return row;
    return std::nullopt;
  }
  std::vector<std::string> levels;
  std::vector<std::vector<std::pair<std::size_t, int>>> lines;  // level, row
  std::unordered_map<std::string, std::string> line_of;         // row id -> line
};

/// A column of the pivoted table: of which one of the long form, and of which level.
struct Source {
  int column = 0;
  std::optional<std::size_t> level;
};

/// Whether it shows what the levels say.
bool shows_levels(const v1::Pivot& pivot, const v1::Column& column) {
  return column.kind() == v1::Column::KIND_SETTING &&
         (column.source() == pivot.by() ||
          std::ranges::find(pivot.picked(), column.source()) != pivot.picked().end());
}

bool is_pivoted(const v1::Table& table, const v1::Column& column) {
  return std::ranges::find(table.pivot().columns(), column.name()) != table.pivot().columns().end();
}

/// Those that stand once keep their places; the others stand together, level by level, where the first of
/// them was.
std::vector<Source> sources_of(const v1::Table& table, const Layout& layout,
                               std::vector<std::string>& left_out) {
  std::vector<Source> sources;
  bool pivoted = false;
  for (int i = 0; i < table.columns_size(); ++i) {
    const v1::Column& column = table.columns(i);
    if (is_pivoted(table, column)) {
      if (std::exchange(pivoted, true)) continue;
      for (std::size_t level = 0; level < layout.levels.size(); ++level)
        for (int other = i; other < table.columns_size(); ++other)
          if (is_pivoted(table, table.columns(other))) sources.push_back({other, level});
    } else if (shows_levels(table.pivot(), column)) {
      continue;
    } else if (column.kind() == v1::Column::KIND_COUNT || column.kind() == v1::Column::KIND_SETTING ||
               column.kind() == v1::Column::KIND_PRINTED) {
      sources.push_back({i, std::nullopt});
    } else {
      left_out.push_back(column.heading().empty() ? column.name() : column.heading());
    }
  }
  return sources;
}

v1::Cell cell_of(const v1::TableRow& row, int column, const std::string& line) {
  v1::Cell cell = row.cells(column);
  if (row.id() != line) cell.set_row(row.id());
  return cell;
}

/// The one cell of all rows of a line: what they have in common, or each of what differs.
v1::Cell common_cell(const v1::Table& table, const std::vector<std::pair<std::size_t, int>>& rows, int column,
                     const std::string& line) {
  v1::Cell cell = cell_of(table.rows(rows.front().second), column, line);
  std::vector<std::string> texts, papers, differs;
  for (const auto& [level, index] : rows) {
    const v1::TableRow& row = table.rows(index);
    const v1::Cell& other = row.cells(column);
    if (std::ranges::find(texts, other.text()) == texts.end()) texts.push_back(other.text());
    if (std::ranges::find(papers, other.paper()) == papers.end()) papers.push_back(other.paper());
    differs.push_back(fmt::format("{} of {}", other.text(), row.id()));
  }
  if (texts.size() > 1) {
    cell.clear_mean();
    cell.clear_sd();
    cell.clear_paper_difference();
    cell.set_text(fmt::format("{}", fmt::join(texts, " / ")));
    cell.set_missing(fmt::format("it differs: {}", fmt::join(differs, ", ")));
  }
  if (papers.size() > 1) {
    std::erase(papers, "");
    cell.set_paper(fmt::format("{}", fmt::join(papers, " / ")));
    if (papers.size() > 1) cell.clear_paper_difference();
  }
  return cell;
}

void add_trials(const v1::TrialCounts& more, v1::TrialCounts& to) {
  to.set_total(to.total() + more.total());
  to.set_queued(to.queued() + more.queued());
  to.set_leased(to.leased() + more.leased());
  to.set_running(to.running() + more.running());
  to.set_completed(to.completed() + more.completed());
  to.set_failed(to.failed() + more.failed());
  to.set_cancelled(to.cancelled() + more.cancelled());
  to.set_held(to.held() + more.held());
  to.set_unfilled(to.unfilled() + more.unfilled());
}

/// All but the rows, of which there may be thousands.
void copy_head(const v1::Table& table, v1::Table& message) {
  using google::protobuf::util::FieldMaskUtil;
  google::protobuf::FieldMask rows, head;
  rows.add_paths("rows");
  FieldMaskUtil::Subtract<v1::Table>(FieldMaskUtil::GetFieldMaskForAllFields<v1::Table>(), rows, &head);
  FieldMaskUtil::MergeMessageTo(table, head, FieldMaskUtil::MergeOptions{}, &message);
}

}  // namespace

void pivoted(const v1::Table& table, const std::vector<std::string>& levels, StatisticsMemo* memo,
             v1::Table& message) {
  const Layout layout{table, levels};
  std::vector<std::string> left_out;
  const std::vector<Source> sources = sources_of(table, layout, left_out);
  copy_head(table, message);
  message.set_pivoted(true);
  message.clear_columns();
  message.clear_paper_agreement();
  message.clear_factor_analyses();
  for (const Source& source : sources) {
    v1::Column& column = *message.add_columns() = table.columns(source.column);
    if (!source.level) continue;
    column.set_of(column.name());
    column.set_level(layout.levels[*source.level]);
    column.set_name(fmt::format("{}[{}]", column.name(), column.level()));
    column.set_has_paper(false);
  }
  const auto line_with = [&](const std::string& row) {
    const auto found = layout.line_of.find(row);
    return found == layout.line_of.end() ? std::string{} : found->second;
  };
  message.set_baseline(line_with(table.baseline()));
  for (std::size_t i = 0; i < layout.lines.size(); ++i) {
    const auto& rows = layout.lines[i];
    const v1::TableRow& first = table.rows(rows.front().second);
    v1::TableRow& line = *message.add_rows();
    line.set_id(first.line());
    line.set_label(first.line_label());
    line.set_group(first.group());
    line.set_not_trained(first.not_trained());
    line.set_not_trained_why(first.not_trained_why());
    for (const auto& [level, row] : rows) {
      // a line whose cells are compared with those of other lines has no one baseline
      if (line.baseline().empty() && table.pivot().picked().empty())
        line.set_baseline(line_with(table.rows(row).baseline()));
      add_trials(table.rows(row).trials(), *line.mutable_trials());
      if (table.rows(row).not_trained().empty()) line.clear_not_trained(), line.clear_not_trained_why();
    }
    for (std::size_t column = 0; column < sources.size(); ++column) {
      const Source& source = sources[column];
      v1::Cell& cell = *line.add_cells();
      if (!source.level) {
        cell = common_cell(table, rows, source.column, line.id());
      } else if (const auto row = layout.row(i, *source.level)) {
        cell = cell_of(table.rows(*row), source.column, line.id());
        if (!cell.paper().empty()) message.mutable_columns(static_cast<int>(column))->set_has_paper(true);
      } else {
        cell.set_text("–");
        cell.set_missing(
            fmt::format("no row has {} = {} here", table.pivot().by(), layout.levels[*source.level]));
      }
    }
  }
  if (!left_out.empty())
    message.add_notes(fmt::format("{}: not in this form of the table; the long one has {}",
                                  fmt::join(left_out, ", "), left_out.size() == 1 ? "it" : "them"));
  rank_cells(message, memo);
}

}  // namespace abl::views
