// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace abl::statistics {

/// p-values corrected for a family of tests, in its order: with them below α, the chance that any of the
/// family is called different while it is not is at most α, however the tests depend on each other.
///   of p₍₁₎ ≤ … ≤ p₍ₘ₎: p̃₍ᵢ₎ = max over j ≤ i of min(1, (m − j + 1) · p₍ⱼ₎)
/// What is not known, or not between 0 and 1, is no test: it stays not known and m does not count it.
/// Source: Holm 1979.
std::vector<std::optional<double>> holm(const std::vector<std::optional<double>>& p);

}  // namespace abl::statistics
