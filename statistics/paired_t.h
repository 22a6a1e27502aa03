// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "statistics/t_test.h"

namespace abl::statistics {

/// The paired t-test: whether the differences aᵢ − bᵢ have the mean 0. Pair i is one seed in both rows; a
/// file declares its rows as paired before results exist, else the better of two tests is no test.
///   t = d̄ / (s_d / √n), n − 1 degrees of freedom.
/// Nothing for lists of different lengths, fewer than two pairs, a value that is not finite, or differences
/// that are all equal. Source: Student 1908.
std::optional<TTest> paired_t_test(const std::vector<double>& a, const std::vector<double>& b);

/// aᵢ − bᵢ; nothing for lists of different lengths.
std::optional<std::vector<double>> differences(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace abl::statistics
