// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "statistics/interval.h"

namespace abl::statistics {

/// How often two columns say the same of a row's difference to the baseline: better or worse.
struct SignAgreement {
  std::size_t agree = 0;
  std::size_t compared = 0;  ///< rows with a difference in both columns
  double share = 0;          ///< agree / compared
  Interval interval;         ///< of the share: Clopper and Pearson 1934, exact for rows that are independent
};

/// Row i differs from the baseline by ours[i] and theirs[i]. A row with a difference of 0, or with one that
/// is not a number, has no sign to compare; an infinite one has. Nothing where no row has, and for lists of
/// different lengths.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
std::optional<SignAgreement> sign_agreement(const std::vector<double>& ours,
                                            const std::vector<double>& theirs, double level = kLevel);

}  // namespace abl::statistics
