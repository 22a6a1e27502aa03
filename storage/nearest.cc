// SPDX-License-Identifier: Apache-2.0
#include "storage/nearest.h"

#include <algorithm>
#include <numeric>

namespace abl::storage {
namespace {

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // edits from a's first i letters to each start of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const auto& candidate : candidates)
    if (const auto count = edits(wanted, candidate); count < fewest && count < candidate.size())
      fewest = count, best = candidate;
  return best;
}

}  // namespace abl::storage
