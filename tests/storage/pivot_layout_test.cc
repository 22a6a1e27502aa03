// SPDX-License-Identifier: Apache-2.0
#include "storage/pivot_layout.h"

#include <gmock/gmock.h>

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(const std::vector<PivotFactor>& factors) {
  std::vector<std::string> names;
  for (const auto& factor : factors) names.push_back(factor.name + " " + factor.key);
  return names;
}

std::vector<std::string> lines(const PivotLayout& layout) {
  std::vector<std::string> lines;
  for (const auto& row : layout.rows) lines.push_back(row.line + " | " + row.level);
  return lines;
}

PivotRow row(const std::string& id, const std::string& set, const std::string& group = "") {
  return pivot_row(id, id, group, set);
}

/// Two levels of each of three factors but for one combination.
std::vector<PivotRow> study() {
  return {row("groups=1,layout=block,size=8", R"({"m.groups":1,"m.layout":"block","data.size":8})"),
          row("groups=1,layout=row,size=8", R"({"m.groups":1,"m.layout":"row","data.size":8})"),
          row("groups=2,layout=row,size=8", R"({"m.groups":2,"m.layout":"row","data.size":8})"),
          row("groups=2,layout=block,size=16", R"({"m.groups":2,"m.layout":"block","data.size":16})")};
}

TEST(PivotLayout, FactorsAreWhatRowsAreCalledByAndDifferIn) {
  const auto factors = pivot_factors(study());
  EXPECT_THAT(names(factors), ElementsAre("groups m.groups", "layout m.layout", "size data.size"));
  EXPECT_THAT(factors[2].levels, ElementsAre("8", "16")) << "as the rows have them";
  auto rows = study();
  rows.pop_back();
  EXPECT_THAT(names(pivot_factors(rows)), ElementsAre("groups m.groups", "layout m.layout"))
      << "no row differs in the size";
}

TEST(PivotLayout, RowsWithNamesOfTheirOwnDifferInWhatTheySet) {
  const std::vector<PivotRow> rows{row("a", R"({"model.name":"vit","recipe.epochs":100})"),
                                   row("b", R"({"data.name":"c10"})"),
                                   row("b-long,epochs=300", R"({"data.name":"c10","recipe.epochs":300})")};
  EXPECT_THAT(names(pivot_factors(rows)),
              ElementsAre("epochs recipe.epochs", "model.name model.name", "data.name data.name"))
      << "names that two keys end with are longer";
}

TEST(PivotLayout, ALevelMayBeAMapping) {
  const std::vector<PivotRow> rows{
      row("attention=a", R"({"model.attention.kernel":"dot","model.attention.groups":2})"),
      row("attention=b", R"({"model.attention.kernel":"none"})")};
  const auto factors = pivot_factors(rows);
  EXPECT_THAT(names(factors), ElementsAre("attention model.attention"));
  EXPECT_THAT(factors[0].levels, ElementsAre("a", "b"));
  EXPECT_THAT(lines(pivot_layout(rows, {"model.attention"})), ElementsAre("all | a", "all | b"));
}

TEST(PivotLayout, LevelsOfSeveralFactorsLieInTheOrderOfTheFirst) {
  const auto by_both = pivot_layout(study(), {"m.layout", "m.groups"});
  EXPECT_THAT(lines(by_both),
              ElementsAre("size=8 | block, 1", "size=8 | row, 1", "size=8 | row, 2", "size=16 | block, 2"));
  EXPECT_THAT(by_both.levels, ElementsAre("block, 1", "block, 2", "row, 1", "row, 2"));
  EXPECT_THAT(pivot_layout(study(), {"m.groups", "m.layout"}).levels,
              ElementsAre("1, block", "1, row", "2, block", "2, row"));
}

TEST(PivotLayout, WhatVariesTogetherWithAFactorTellsNoLinesApart) {
  const std::vector<PivotRow> rows{
      row("a,head=fpn,use=short", R"({"x":1,"task.head":"fpn","recipe.use":"short"})"),
      row("a,head=uper,use=long", R"({"x":1,"task.head":"uper","recipe.use":"long"})"),
      row("b,head=fpn,use=short", R"({"x":2,"task.head":"fpn","recipe.use":"short"})")};
  EXPECT_THAT(lines(pivot_layout(rows, {"task.head"}, {"recipe.use"})),
              ElementsAre("a | fpn", "a | uper", "b | fpn"));
  EXPECT_THAT(lines(pivot_layout(rows, {"task.head"})),
              ElementsAre("a,use=short | fpn", "a,use=long | uper", "b,use=short | fpn"));
}

TEST(PivotLayout, RowsOfAnotherGroupStandApartAndARowWithoutTheFactorHasALevelToo) {
  const std::vector<PivotRow> rows{row("x=1", R"({"p.x":1})", "first"), row("x=2", R"({"p.x":2})", "second"),
                                   row("plain", "{}", "second")};
  EXPECT_THAT(lines(pivot_layout(rows, {"p.x"})), ElementsAre("x=1 | 1", "x=2 | 2", "x=2 | –"));
}

TEST(PivotLayout, NothingIsToBePivotedWhereNothingDiffers) {
  EXPECT_THAT(pivot_factors({}), IsEmpty());
  EXPECT_THAT(pivot_factors({row("a", R"({"p.x":1})"), row("b", R"({"p.x":1})")}), IsEmpty());
  EXPECT_THAT(pivot_factors({row("a", "of another release"), row("b", "")}), IsEmpty());
}

}  // namespace
}  // namespace abl::storage
