// SPDX-License-Identifier: Apache-2.0
#include "statistics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "statistics/distributions.h"
#include "statistics/mean_sd.h"
#include "statistics/summary.h"

namespace abl::statistics {
namespace {

/// Steele, Lea and Flood 2014.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_{seed} {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// From 0 to bound − 1; bounds are far below 2³², so that what is not uniform is too little to see.
  std::size_t below(std::size_t bound) { return ((next() >> 32) * bound) >> 32; }

 private:
  std::uint64_t state_;
};

/// Adds the mean of each resample, `sign` times, to `means`.
void add_means(const std::vector<double>& values, double sign, SplitMix64& random,
               std::vector<double>& means) {
  const auto n = static_cast<double>(values.size());
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
    mean += sign * (sum / n);
  }
}

/// Quantile of type 7. Changes the order of the values.
double quantile_of(std::vector<double>& values, double q) {
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), below, values.end());
  const double share = position - std::floor(position);
  if (share == 0) return *below;
  return std::lerp(*below, *std::min_element(below + 1, values.end()), share);
}

/// Moments of what one value more or less would change, x − mean in units of `scale`.
struct Influence {
  double scale, squares = 0, cubes = 0;
  void add(const std::vector<double>& values, double mean, double sign) {
    const auto n = static_cast<double>(values.size());
    for (const double value : values) {
      const double u = sign * (value - mean) / scale / n;
      squares += u * u;
      cubes += u * u * u;
    }
  }
  double acceleration() const { return cubes / (6 * std::pow(squares, 1.5)); }
};

/// The part of `means` that is below `estimate`, where half of what is equal but for rounding counts.
double share_below(const std::vector<double>& means, double estimate, double rounding) {
  double count = 0;
  for (const double mean : means)
    count += mean < estimate - rounding ? 1 : mean <= estimate + rounding ? 0.5 : 0;
  return count / static_cast<double>(means.size());
}

struct Side {
  const std::vector<double>& values;
  double sign;
};

std::optional<Interval> interval_of_sides(const std::vector<Side>& sides, const BootstrapOptions& options) {
  expect_level(options.level);
  if (options.resamples == 0) throw Error{Code::kInvalidArgument, "resamples 0: expected one or more"};
  double estimate = 0, rounding = 0, largest_sd = 0;
  for (const auto& [values, sign] : sides) {
    const auto summary = summarise(values);
    if (!summary || !summary->sd) return std::nullopt;
    largest_sd = std::max(largest_sd, *summary->sd);
    estimate += sign * summary->mean;
    const auto [low, high] = std::ranges::minmax(values);
    rounding += 4 * static_cast<double>(values.size()) * std::numeric_limits<double>::epsilon() *
                std::max(std::abs(low), std::abs(high));
  }
  if (largest_sd == 0 || !std::isfinite(estimate)) return std::nullopt;
  SplitMix64 random{options.seed};
  std::vector<double> means(options.resamples);
  for (const auto& [values, sign] : sides) add_means(values, sign, random, means);
  double low = (1 - options.level) / 2, high = (1 + options.level) / 2;
  if (options.kind == Bootstrap::kBca) {
    Influence influence{.scale = largest_sd};
    for (const auto& [values, sign] : sides) influence.add(values, mean_sd(values).mean, sign);
    const double acceleration = influence.acceleration(), z = normal_quantile(high);
    const double bias = normal_quantile(share_below(means, estimate, rounding));
    if (!std::isfinite(bias) || !(std::abs(acceleration) * (std::abs(bias) + z) < 1)) return std::nullopt;
    const auto corrected = [&](double from) {
      return normal_cdf(bias + (bias + from) / (1 - acceleration * (bias + from)));
    };
    low = corrected(-z);
    high = corrected(z);
  }
  const Interval interval{.low = quantile_of(means, low), .high = quantile_of(means, high)};
  if (!(interval.low < interval.high) || !std::isfinite(interval.high - interval.low)) return std::nullopt;
  return interval;
}

}  // namespace

std::optional<Interval> bootstrap_interval(const std::vector<double>& values,
                                           const BootstrapOptions& options) {
  return interval_of_sides({{values, 1}}, options);
}

std::optional<Interval> bootstrap_interval_of_difference(const std::vector<double>& a,
                                                         const std::vector<double>& b,
                                                         const BootstrapOptions& options) {
  return interval_of_sides({{a, 1}, {b, -1}}, options);
}

}  // namespace abl::statistics
