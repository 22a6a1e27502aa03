// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"

namespace abl::printing {

/// Which rows and columns of a table are printed, and in which order. The dashboard follows the same rules
/// (web/app/src/pages/sweeps/[name]/selection.ts), so it shows what is printed.
struct Selection {
  /// "acc": rows by this column, ascending; "-acc": descending; "acc.paper": by the paper's values; "row": by
  /// id. Rows without a value come last either way; equal rows keep their order. Empty: the file's order.
  std::string sort;
  std::vector<std::string> without;  ///< columns that are left out, by name
  bool complete = false;             ///< only rows that have all of their values
  std::string find;                  ///< only rows with each of these words in id, label, group or a setting
  /// Only rows of these ids, and lines of a pivoted table that have one of them; nothing: all.
  std::optional<std::set<std::string>> only{};
};

/// Removes what is not chosen, and sorts the rest. Comparisons, best values and notes stay those of the whole
/// table. Throws: Error{kInvalidArgument} for an unknown column, with the nearest name.
void select(ablate::v1::Table& table, const Selection& selection);

}  // namespace abl::printing
