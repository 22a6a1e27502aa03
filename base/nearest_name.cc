// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace abl {
namespace {

constexpr std::size_t kLongestName =
    64;  // longer ones are no misspelt names, and the table of edits is quadratic

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

constexpr std::size_t kEditCost = 2;

/// A forgotten or other separator counts half: "fsne" is nearer to "f-sne" than to "sne".
std::size_t cost(char letter) {
  return std::string_view{"-_. "}.find(letter) == std::string_view::npos ? kEditCost : 1;
}

std::size_t replacing(char a, char b) { return same_letter(a, b) ? 0 : std::max(cost(a), cost(b)); }

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 && j == 0) continue;
      std::size_t fewest = std::numeric_limits<std::size_t>::max();
      if (i > 0) fewest = std::min(fewest, edits[i - 1][j] + cost(a[i - 1]));
      if (j > 0) fewest = std::min(fewest, edits[i][j - 1] + cost(b[j - 1]));
      if (i > 0 && j > 0) fewest = std::min(fewest, edits[i - 1][j - 1] + replacing(a[i - 1], b[j - 1]));
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
        fewest = std::min(fewest, edits[i - 2][j - 2] + kEditCost);
      edits[i][j] = fewest;
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view written, const std::vector<std::string>& names, double part) {
  std::string nearest;
  std::size_t fewest = kEditCost * kLongestName;
  if (written.size() > kLongestName) return nearest;
  for (const std::string& name : names) {
    if (name.size() > kLongestName) continue;
    const std::size_t edits = edits_between(written, name);
    const auto letters = static_cast<double>(std::max(written.size(), name.size()));
    if (edits < fewest && static_cast<double>(edits) <= part * kEditCost * letters) {
      nearest = name;
      fewest = edits;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view written, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(written, names);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

std::string any_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace abl
