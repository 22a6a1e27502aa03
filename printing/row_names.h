// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "printing/grid.h"

namespace abl::printing {

/// What tells the rows of a table apart, as narrow columns. Rows that factors made are called by their
/// levels, a column for each factor that has more than one ("groups  layout"), unless a setting's column of
/// the table shows it; the others by id and, where it says more, label.
class RowNames {
 public:
  /// `with_settings`: whether the settings' columns of the table are shown beside them.
  explicit RowNames(const ablate::v1::Table& table, bool with_settings = true);

  /// A terminal that is too narrow cuts them first.
  const std::vector<Grid::Column>& columns() const { return columns_; }
  /// For a row's position in the table.
  const std::vector<std::string>& cells(int row) const { return cells_.at(static_cast<std::size_t>(row)); }
  /// The same where no other column stands beside them: every factor, and no labels. For a row's id; the id
  /// alone where the table has no such row.
  std::vector<std::string> short_cells(const std::string& id) const;
  const std::vector<Grid::Column>& short_columns() const { return short_columns_; }
  bool are_factors() const { return factors_; }
  /// Whether a column of the table, a setting's, is all that shows a factor: it names rows too.
  bool names_rows(int column) const { return shown_by_.contains(column); }

 private:
  bool read_factors(const ablate::v1::Table& table, bool with_settings);
  void read_labels(const ablate::v1::Table& table);

  std::vector<std::string> ids_;
  std::vector<Grid::Column> columns_, short_columns_;
  std::vector<std::vector<std::string>> cells_, short_cells_;
  std::set<int> shown_by_;
  bool factors_ = false;
};

/// How far a terminal may cut these names so that those that differ still do, an ellipsis at the end; at
/// least `least`.
int least_of_names(const std::vector<std::string>& names, int least);

}  // namespace abl::printing
