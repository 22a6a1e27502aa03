// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace abl::statistics {

/// What one cell's values say by themselves.
/// Units: those of the values.
struct Summary {
  std::size_t n = 0;
  double mean = 0;
  std::optional<double> sd;  ///< √(Σ(x − mean)² / (n − 1)); nothing for one value, 0 where all are equal
  std::optional<double> standard_error;  ///< sd / √n
};

/// Nothing for no values, for one that is not finite, and where the mean is too large for a double.
std::optional<Summary> summarise(const std::vector<double>& values);

/// The deviation within two rows that have one: √(((n − 1) s²ₐ + (m − 1) s²_b) / (n + m − 2)).
/// Units: those of the values. Nothing for fewer than two values on a side, a value that is not finite, or no
/// spread.
std::optional<double> pooled_sd(const std::vector<double>& a, const std::vector<double>& b);

/// Whether all values are one and the same: their deviation is then 0, whatever rounding makes of it.
bool are_equal(const std::vector<double>& values);

bool are_finite(const std::vector<double>& values);

}  // namespace abl::statistics
