// SPDX-License-Identifier: Apache-2.0
#include "statistics/sequential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "statistics/distributions.h"

namespace abl::statistics {
namespace {

/// What may be spent by the time that a share of the looks is over.
double spent_until(double share, double alpha, Spending spending) {
  switch (spending) {
    case Spending::kOBrienFleming:
      return 2 * normal_cdf(normal_quantile(alpha / 2) / std::sqrt(share));
    case Spending::kPocock:
      return alpha * std::log1p((std::numbers::e - 1) * share);
  }
  throw Error{Code::kInternal, fmt::format("unknown spending {}", static_cast<int>(spending))};
}

}  // namespace

SequentialDesign::SequentialDesign(std::size_t looks, double level, Spending spending) : alpha_{1 - level} {
  expect_level(level);
  if (looks == 0) throw Error{Code::kInvalidArgument, "looks 0: expected one or more"};
  double before = 0;
  for (std::size_t k = 1; k <= looks; ++k) {
    const double until =
        k == looks ? alpha_
                   : spent_until(static_cast<double>(k) / static_cast<double>(looks), alpha_, spending);
    spent_.push_back(until - before);
    before = until;
  }
}

double SequentialDesign::level_at(std::size_t look) const {
  if (look >= spent_.size())
    throw Error{Code::kOutOfRange, fmt::format("look {}: the design has {}", look + 1, spent_.size())};
  return std::min(1 - spent_[look], std::nextafter(1.0, 0.0));
}

std::optional<double> SequentialDesign::p(const std::vector<std::optional<double>>& p_of_looks) const {
  if (p_of_looks.size() > spent_.size())
    throw Error{Code::kOutOfRange,
                fmt::format("{} looks: the design has {}", p_of_looks.size(), spent_.size())};
  std::optional<double> least;
  for (std::size_t k = 0; k < p_of_looks.size(); ++k) {
    if (!p_of_looks[k] || !(*p_of_looks[k] >= 0 && *p_of_looks[k] <= 1)) continue;
    const double p = spent_[k] > 0 ? *p_of_looks[k] / spent_[k] * alpha_ : 1;
    least = std::min(least.value_or(1), p);
  }
  return least;
}

}  // namespace abl::statistics
