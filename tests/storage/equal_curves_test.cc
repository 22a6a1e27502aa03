// SPDX-License-Identifier: Apache-2.0
#include "storage/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Rows of curves by seed, each of a trial of its own.
using RowsOfCurves = std::vector<std::map<std::int64_t, std::int64_t>>;

std::vector<std::vector<std::size_t>> equal_rows_of(const RowsOfCurves& rows) {
  EqualCurves curves;
  TrialId trial = 0;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const auto& [seed, digest] : rows[row]) curves.add(row, seed, digest, ++trial);
  return curves.groups();
}

/// The same, one row after the other compared with one group after the other.
std::vector<std::vector<std::size_t>> compared_one_by_one(const RowsOfCurves& rows) {
  std::vector<std::pair<std::vector<std::size_t>, std::map<std::int64_t, std::int64_t>>> groups;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto fitting = groups.begin();
    for (; fitting != groups.end(); ++fitting) {
      bool shares = false, differs = false;
      for (const auto& [seed, digest] : rows[row])
        if (const auto own = fitting->second.find(seed); own != fitting->second.end())
          (own->second == digest ? shares : differs) = true;
      if (shares && !differs) break;
    }
    if (fitting == groups.end()) fitting = groups.insert(fitting, {{}, {}});
    fitting->first.push_back(row);
    fitting->second.insert(rows[row].begin(), rows[row].end());
  }
  std::vector<std::vector<std::size_t>> equal;
  for (auto& [ids, curves] : groups)
    if (ids.size() > 1) equal.push_back(ids);
  return equal;
}

TEST(EqualCurvesTest, RowsAreEqualWhereTheyAreAtEverySeedThatBothHave) {
  EXPECT_THAT(equal_rows_of({{{0, 7}, {1, 8}}, {{0, 7}}, {{1, 8}}, {{0, 7}, {1, 9}}}),
              ElementsAre(ElementsAre(0u, 1u, 2u)));
  EXPECT_THAT(equal_rows_of({{{0, 7}}, {{1, 7}}}), IsEmpty()) << "no seed that both have";
}

TEST(EqualCurvesTest, GroupsAreThoseOfAComparisonOneByOne) {
  std::mt19937 random{1};
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int table = 0; table < 300; ++table) {
    RowsOfCurves rows(static_cast<std::size_t>(1 + below(30)));
    for (auto& row : rows)
      for (const std::int64_t seed : {0, 1, 2})
        if (row.empty() || below(3) > 0) row[seed] = 1 + below(3);
    EXPECT_EQ(equal_rows_of(rows), compared_one_by_one(rows));
  }
}

/// Compared one by one these would take hours: a test that ends by its time limit then.
TEST(EqualCurvesTest, ManyRowsThatShareOneCurveAreLookedUpAndNotCompared) {
  constexpr std::size_t kRows = 200'000;
  EqualCurves curves;
  TrialId trial = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    curves.add(row, 0, 5, ++trial);
    if (row % 2 == 0) curves.add(row, 1, static_cast<std::int64_t>(6 + row), ++trial);
    if (row % 2 != 0) curves.add(row, 2, static_cast<std::int64_t>(6 + row), ++trial);
  }
  const auto groups = curves.groups();
  ASSERT_EQ(groups.size(), kRows / 2) << "each row without seed 1 with the next without seed 2";
  EXPECT_THAT(groups[0], ElementsAre(0u, 1u));
}

}  // namespace
}  // namespace abl::storage
