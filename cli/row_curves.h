// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/source.h"
#include "cli/tables.h"

namespace abl::cli {

/// What the runs of a table's rows said of some metrics.
struct RowCurves {
  std::map<std::string, std::vector<Curve>> metrics;  ///< by name, in the order of the rows
  std::set<std::string> said;                         ///< names of all that any run said
};

/// Trials that are completed or run, of whose points about as many are kept as a picture shows, however many
/// there are. Throws: Error{kInvalidArgument} for a table of more than `most` trials.
RowCurves row_curves(Source& source, const ablate::v1::Table& table, const std::set<std::string>& metrics,
                     int most);

}  // namespace abl::cli
