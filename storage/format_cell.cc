// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "storage/table.h"

namespace abl::storage {
namespace {

/// A number as people round it: half away from zero, judged on its 15 decimal digits, so that 61.125
/// becomes 61.13 whatever its last bit is.
std::string rounded(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  const std::string scientific = fmt::format("{:.14e}", std::abs(value));  // d.dddddddddddddde±xx
  const int exponent = std::stoi(scientific.substr(16 + 1));
  std::string figures = scientific.substr(0, 1) + scientific.substr(2, 14);
  const int kept = exponent + 1 + digits;  // figures before the cut
  if (kept < 0)
    figures = "0";
  else if (kept < static_cast<int>(figures.size())) {
    const bool up = figures[static_cast<std::size_t>(kept)] >= '5';
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

double scale(const std::string& unit) { return unit == "M" ? 1e6 : unit == "G" ? 1e9 : 1; }

}  // namespace

std::string format_cell(const std::optional<double>& mean, const std::optional<double>& sd, int digits,
                        const std::string& unit) {
  if (!mean) return "–";
  std::string text = rounded(*mean / scale(unit), digits);
  if (sd && std::isfinite(*mean)) text += " ± " + rounded(*sd / scale(unit), digits);
  return text;
}

}  // namespace abl::storage
