// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "printing/sheet.h"
#include "printing/table.h"
#include "protocol/csv.h"
#include "storage/table.h"
#include "views/comparison.h"

namespace abl::printing {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;
using protocol::csv_field;
using protocol::csv_number;

using Numbers = std::vector<std::pair<std::string, std::optional<double>>>;

/// What CSV has of a cell's statistics: the ends of columns' names, and values where there are some.
Numbers statistics_of(const Cell& cell, double unit) {
  const auto& said = cell.statistics();
  const auto known = [](bool is_known, double value) {
    return is_known ? std::optional{value} : std::nullopt;
  };
  const auto in_unit = [&](bool is_known, double value) { return known(is_known, value / unit); };
  return {{"_se", in_unit(said.has_standard_error(), said.standard_error())},
          {"_low", in_unit(said.has_interval(), said.interval().low())},
          {"_high", in_unit(said.has_interval(), said.interval().high())},
          {"_difference", in_unit(said.has_difference(), said.difference())},
          {"_difference_low", in_unit(said.has_difference_interval(), said.difference_interval().low())},
          {"_difference_high", in_unit(said.has_difference_interval(), said.difference_interval().high())},
          {"_p", known(cell.has_p(), cell.p())},
          {"_p_corrected", known(cell.has_p_corrected(), cell.p_corrected())},
          {"_g", known(said.has_g(), said.g())},
          {"_g_low", known(said.has_g_interval(), said.g_interval().low())},
          {"_g_high", known(said.has_g_interval(), said.g_interval().high())},
          {"_to_see", in_unit(said.has_to_see(), said.to_see())},
          {"_more_seeds", known(said.has_more_seeds(), said.more_seeds())}};
}

}  // namespace

/// A table for programs: columns by name, means and deviations apart with all their digits, an empty field
/// where there is no value.
std::string csv_table(const Table& table) {
  std::string text = "row,label,baseline";
  const bool with_statistics = std::ranges::any_of(table.rows(), [](const TableRow& row) {
    return std::ranges::any_of(row.cells(), [](const Cell& cell) { return cell.has_statistics(); });
  });
  const bool grouped =
      std::ranges::any_of(table.rows(), [](const TableRow& row) { return !row.group().empty(); });
  const bool untrained =
      std::ranges::any_of(table.rows(), [](const TableRow& row) { return !row.not_trained().empty(); });
  const bool diverged = std::ranges::any_of(table.rows(), [](const TableRow& row) {
    return std::ranges::any_of(row.cells(), [](const Cell& cell) { return cell.diverged_size() > 0; });
  });
  const bool scaled = !table.scale().empty();
  const bool imported =
      std::ranges::any_of(table.rows(), [](const TableRow& row) { return !row.imported().empty(); });
  text += fmt::format("{}{}{}{}", grouped ? ",group" : "", untrained ? ",not_trained" : "",
                      scaled ? ",scale" : "", imported ? ",imported" : "");
  for (const auto& column : table.columns()) {
    if (column.kind() != Column::KIND_PRINTED) text += fmt::format(",{}", csv_field(column.name()));
    if (is_metric(column))
      text += fmt::format(",{},{}", csv_field(column.name() + "_sd"), csv_field(column.name() + "_n"));
    if (is_metric(column) && diverged) text += fmt::format(",{}", csv_field(column.name() + "_diverged"));
    if (is_metric(column) && with_statistics)
      for (const auto& [name, number] : statistics_of(Cell{}, 1))
        text += fmt::format(",{}", csv_field(column.name() + name));
    if (column.has_paper()) text += fmt::format(",{}", csv_field(column.name() + "_paper"));
  }
  text += "\n";
  for (const auto& row : table.rows()) {
    text += fmt::format("{},{},{}", csv_field(row.id()), csv_field(row.label()),
                        views::is_baseline(table, row) ? "yes" : "no");
    if (grouped) text += fmt::format(",{}", csv_field(row.group()));
    if (untrained) text += fmt::format(",{}", row.not_trained());
    if (scaled) text += fmt::format(",{}", csv_field(table.scale()));
    if (imported) text += fmt::format(",{}", csv_field(row.imported()));
    for (int index = 0; index < table.columns_size(); ++index) {
      const Column& column = table.columns(index);
      const Cell& cell = row.cells(index);
      const double unit = storage::unit_factor(unit_of(column));
      const bool sd = cell.has_sd() && std::isfinite(cell.mean());
      if (column.kind() == Column::KIND_SETTING)
        text +=
            fmt::format(",{}", cell.text() == "–" && !cell.missing().empty() ? "" : csv_field(cell.text()));
      else if (column.kind() != Column::KIND_PRINTED)
        text += fmt::format(",{}", cell.has_mean() ? csv_number(cell.mean() / unit) : "");
      if (is_metric(column)) text += fmt::format(",{},{}", sd ? csv_number(cell.sd() / unit) : "", cell.n());
      if (is_metric(column) && diverged) text += fmt::format(",{}", cell.diverged_size());
      if (is_metric(column) && with_statistics)
        for (const auto& [name, number] : statistics_of(cell, unit))
          text += fmt::format(",{}", number ? csv_number(*number) : "");
      if (column.has_paper()) text += fmt::format(",{}", csv_field(cell.paper()));
    }
    text += "\n";
  }
  return text;
}

}  // namespace abl::printing
