// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"

/// What stands below a printed table, in whatever format.
namespace abl::printing {

/// What the signs behind values say, and of which test, in a line; empty where nothing was tested.
std::string comparison_legend(const ablate::v1::Table& table);

/// Cells of rows that are trained, without any value or with some that will not come.
struct Gaps {
  std::vector<std::string> lines;  ///< one for each reason: "acc, loss: 1 of 2 trials is queued (rows a, b)"
  std::size_t cells =
      0;  ///< how many of them are of trials: a level of a pivot that has no such row is no gap
};
Gaps gaps_of(const ablate::v1::Table& table);

}  // namespace abl::printing
