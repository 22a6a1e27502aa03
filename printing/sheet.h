// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "printing/grid.h"
#include "printing/table.h"
#include "protocol/column.h"
#include "protocol/metrics.h"

namespace abl::printing {

/// Behind a value of the paper that is in doubt; a note says why.
inline constexpr const char* kDoubt = " (?)";

/// A table as people see it: what text, Markdown, LaTeX and HTML have in common. What tells the rows apart is
/// first, the papers' columns are last, in one group.
struct Sheet {
  struct Row {
    std::vector<std::string> cells;
    std::vector<bool> best;            ///< of its column, beyond what the seeds' spread explains: a cell each
    std::vector<bool> second;          ///< of its column but for the best: a cell each
    std::vector<std::string> signs{};  ///< "↑" where it differs from its baseline, or empty: a cell each
    bool baseline = false;
    std::string group;                 ///< the heading that it stands under, or empty
    std::vector<std::string> marks{};  ///< how the paper prints a cell of it ("bold"), or empty: a cell each
    bool underlined(std::size_t column) const { return second[column] || marks[column] == "underline"; }
  };
  std::vector<Grid::Column> columns;
  std::size_t names = 0;  ///< how many of the columns are the rows' names
  std::vector<std::size_t>
      naming{};  ///< all that tell the rows apart: settings too, where they show a factor
  std::vector<Row> rows;
};

/// Every row with its name, values, n behind the metrics, and the papers' values. On a narrow terminal the
/// names are cut first, then papers', settings and counts left out, metrics last. Of a pivoted table the
/// columns of a level stand together under it, the papers' among them.
Sheet sheet_of(const ablate::v1::Table& table, const TableOptions& options = {});

/// What stands for each column: as asked, otherwise as the table's file says, otherwise value, n and paper.
std::vector<protocol::Shown> shown_of(const ablate::v1::Table& table,
                                      const std::vector<protocol::Shown>& asked);

/// "value,n,paper". Throws: Error{kInvalidArgument} with the nearest word.
std::vector<protocol::Shown> shown_named(const std::string& words);

/// Its cells have a value for each seed: a metric of the runs, or an expression of one.
inline bool is_metric(const ablate::v1::Column& column) {
  return column.kind() == ablate::v1::Column::KIND_METRIC || column.per_seed();
}

/// Its heading, or its name where it has none.
std::string name_of(const ablate::v1::Column& column);
/// The same with the unit, where it does not say it: "params (M)".
std::string heading_of(const ablate::v1::Column& column);
/// Nothing where it has none, or one that is not known here: its values are shown as they are.
std::optional<protocol::Unit> unit_of(const ablate::v1::Column& column);

}  // namespace abl::printing
