// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "cli/grid.h"
#include "protocol/metrics.h"

namespace abl::cli {

/// A table as people see it: what text, Markdown and LaTeX have in common. What tells the rows apart is
/// first, the papers' columns are last, in one group.
struct Sheet {
  struct Row {
    std::vector<std::string> cells;
    std::vector<bool> best;  ///< of its column, beyond what the seeds' spread explains: a cell each
    bool baseline = false;
  };
  std::vector<Grid::Column> columns;
  std::size_t names = 0;  ///< how many of the columns tell the rows apart
  std::vector<Row> rows;
};

/// Every row with its name, values, n behind the metrics, and the papers' values. On a narrow terminal the
/// names are cut first, then papers', settings and counts left out, metrics last.
Sheet sheet_of(const ablate::v1::Table& table);

/// It takes a metric of the runs; another shows a setting or a paper's value.
inline bool is_metric(const ablate::v1::Column& column) {
  return column.kind() == ablate::v1::Column::KIND_METRIC;
}

/// Its heading, or its name where it has none.
std::string name_of(const ablate::v1::Column& column);
/// The same with the unit, where it does not say it: "params (M)".
std::string heading_of(const ablate::v1::Column& column);
/// Nothing where it has none, or one that is not known here: its values are shown as they are.
std::optional<protocol::Unit> unit_of(const ablate::v1::Column& column);

}  // namespace abl::cli
