// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "protocol/metrics.h"

namespace abl::storage {

using protocol::Unit;

namespace {

/// A number as people round it: half away from zero, judged on its 15 decimal digits, so that 61.125
/// becomes 61.13 whatever its last bit is; or `cut`, without further digits.
std::string rounded(double value, int digits, bool cut = false) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  const std::string scientific = fmt::format("{:.14e}", std::abs(value));  // d.dddddddddddddde±xx
  const int exponent = std::stoi(scientific.substr(16 + 1));
  std::string figures = scientific.substr(0, 1) + scientific.substr(2, 14);
  const int kept = exponent + 1 + digits;  // figures before the cut
  if (kept < 0)
    figures = "0";
  else if (kept < static_cast<int>(figures.size())) {
    const bool up = !cut && figures[static_cast<std::size_t>(kept)] >= '5';
    figures.resize(static_cast<std::size_t>(kept));
    figures.insert(0, "0");
    for (std::size_t i = figures.size(); up && i-- > 0;) {
      if (figures[i] != '9') {
        ++figures[i];
        break;
      }
      figures[i] = '0';
    }
  } else {
    figures.append(static_cast<std::size_t>(kept) - figures.size(), '0');
  }
  // `figures` is now the value times 10^digits, an integer
  const auto first = figures.find_first_not_of('0');
  figures.erase(0, first == std::string::npos ? figures.size() : first);
  const bool zero = figures.empty();
  if (static_cast<int>(figures.size()) <= digits)
    figures.insert(0, static_cast<std::size_t>(digits) + 1 - figures.size(), '0');
  if (digits > 0) figures.insert(figures.size() - static_cast<std::size_t>(digits), ".");
  return (value < 0 && !zero ? "-" : "") + figures;
}

/// "1.23e17": short however large or small a value is.
std::string with_exponent(double value, int digits) {
  std::string text = fmt::format("{:.{}e}", value, digits);
  const auto exponent = text.find('e') + 1;
  return text.substr(0, exponent) + std::to_string(std::stoi(text.substr(exponent)));
}

/// Of a value rounded to two figures: 0.0996 is 1.0e-1.
int exponent_of(double value) {
  const std::string text = fmt::format("{:.1e}", std::abs(value));
  return std::stoi(text.substr(text.find('e') + 1));
}

constexpr int kFewestDigits = 2, kMostDigits = 6;  // digits after the point, where nobody has said how many
constexpr double kWidest = 1e10;                   // the same: what is wider than a column should be
constexpr double kMadeUp = 1e15;                   // a double knows no more figures: those behind are made up
constexpr double kNoise = 1e-12;  // a deviation that is rounding alone, as a part of the mean

std::string with_digits(double value, int digits, bool cut = false) {
  return std::isfinite(value) && std::abs(value) >= kMadeUp ? with_exponent(value, 2)
                                                            : rounded(value, digits, cut);
}

/// As many digits as give the deviation two figures, or the value where there is none; at least two digits.
std::string as_needed(double mean, const std::optional<double>& sd) {
  const bool spread = sd && std::isfinite(*sd) && *sd > kNoise * std::abs(mean);
  const double judged = spread ? *sd : mean;
  const int digits = judged == 0 ? kFewestDigits : std::max(kFewestDigits, 1 - exponent_of(judged));
  const auto text = [&](double value, int figures) {
    if (!std::isfinite(value) || value == 0) return rounded(value, kFewestDigits);
    const bool plain = std::abs(value) < kWidest && 1 - exponent_of(value) <= kMostDigits;
    return plain ? rounded(value, std::min(digits, kMostDigits)) : with_exponent(value, figures);
  };
  const int figures = spread && mean != 0
                          ? std::clamp(exponent_of(mean) - exponent_of(*sd) + 1, kFewestDigits, kMostDigits)
                          : kFewestDigits;
  if (digits <= kMostDigits && std::abs(mean) < kWidest)
    return rounded(mean, digits) + (sd ? " ± " + with_digits(*sd, digits) : "");
  return text(mean, figures) + (sd ? " ± " + text(*sd, 1) : "");
}

}  // namespace

double unit_factor(const std::optional<Unit>& unit) {
  if (!unit) return 1;
  switch (*unit) {
    case Unit::kPercent:
      return 1;
    case Unit::kMillion:
      return 1e6;
    case Unit::kBillion:
      return 1e9;
  }
  return 1;
}

std::optional<Unit> fitting_unit(const std::optional<Unit>& unit, double largest) {
  for (const Unit smaller : {Unit::kBillion, Unit::kMillion})
    if (unit_factor(smaller) <= unit_factor(unit) && largest >= 0.1 * unit_factor(smaller)) return smaller;
  return largest > 0 ? std::nullopt : unit;
}

std::string format_cell(const std::optional<double>& mean, const std::optional<double>& sd,
                        const std::optional<int>& digits, const std::optional<Unit>& unit, bool cut) {
  if (!mean) return "–";
  const double value = *mean / unit_factor(unit);
  if (!std::isfinite(value)) return rounded(value, 0);
  const auto spread = sd ? std::optional{*sd / unit_factor(unit)} : std::nullopt;
  if (!digits) return as_needed(value, spread);
  return with_digits(value, *digits, cut) + (spread ? " ± " + with_digits(*spread, *digits) : "");
}

}  // namespace abl::storage
