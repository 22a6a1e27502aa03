// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "cli/grid.h"

namespace abl::cli {

/// A table as people see it: what text, Markdown and LaTeX have in common. The papers' columns are last, in
/// one group.
struct Sheet {
  std::vector<Grid::Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Every row with its id and label (the baseline's says so), values, n behind the metrics, and the papers'
/// values.
Sheet sheet_of(const ablate::v1::Table& table);

/// Its heading, or its name where it has none.
std::string name_of(const ablate::v1::Column& column);
/// The same with the unit, where it does not say it: "params (M)".
std::string heading_of(const ablate::v1::Column& column);

}  // namespace abl::cli
