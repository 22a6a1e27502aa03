// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kBase = R"(ablate: 1
name: small
base:
  model: {preset: simple-vit-ti, attention: {kernel: gaussian, probe: inside}}
  data: {name: cifar10}
  recipe: {use: cifar-lite}
)";
constexpr const char* kTable = "table: {columns: [{name: acc, metric: val/top1}]}\n";

std::string canonical(const std::string& rest) { return parse_sweep(kBase + rest, "small.yaml").canonical; }

TEST(CanonicalSpecTest, HowAFileIsWrittenLeavesNoTrace) {
  const std::string text =
      canonical("rows: [{id: h, label: H, set: {model.attention.share: QKKKW}}]\nseeds: [0, 1]\n");
  EXPECT_EQ(canonical("# a comment\nrows:\n  - id: h\n    set: {model.attention: {share: 'AKKKW', layout: "
                      "block}}\n    label: 'H'\nseeds: 2\n"),
            text);
  EXPECT_NE(canonical("rows: [{id: h, label: H, set: {model.attention.share: QKKKW}}]\nseeds: [0]\n"), text);
}

TEST(CanonicalSpecTest, TheOrderOfRowsIsPartOfTheTable) {
  EXPECT_NE(canonical("rows: [{id: a}, {id: b}]\n"), canonical("rows: [{id: b}, {id: a}]\n"));
}

TEST(DifferenceTest, EqualSpecsDoNotDiffer) {
  const std::string text = canonical("rows: [{id: a}]\n");
  EXPECT_THAT(difference(text, text), IsEmpty());
}

TEST(DifferenceTest, ASettingIsNamedWithBothValues) {
  EXPECT_THAT(difference(canonical("rows: [{id: h, set: {model.attention.share: QKKKW}}]\n"),
                         canonical("rows: [{id: h, set: {model.attention.share: QKVVW}}]\n")),
              ElementsAre("rows.h.model.attention.share: QKKKW here, QKVVW in the store"));
  EXPECT_THAT(difference(canonical("rows: [{id: h, set: {model.attention.groups: 2}}]\n"),
                         canonical("rows: [{id: h}]\n")),
              ElementsAre("rows.h.model.attention.groups: 2 here, the default in the store"));
}

TEST(DifferenceTest, AMissingRowIsOneLine) {
  EXPECT_THAT(difference(canonical("rows: [{id: a}, {id: b}]\n"), canonical("rows: [{id: a}, {id: c}]\n")),
              ElementsAre("rows.b: only here", "rows.c: only in the store"));
}

TEST(CanonicalSpecTest, HowCellsAreComparedIsDeclaredOnlyWhereItIsNotAsUsual) {
  const std::string rows = "rows: [{id: a}]\n", columns = "columns: [{name: acc, metric: val/top1}]";
  const std::string usual = canonical(rows + "table: {" + columns + "}\n");
  EXPECT_EQ(
      canonical(rows + "table: {compare: {test: welch, interval: t, correction: holm}, " + columns + "}\n"),
      usual);
  const std::string paired = canonical(rows + "table: {compare: {test: paired}, " + columns + "}\n");
  EXPECT_THAT(paired, testing::HasSubstr(R"("compare":{"test":"paired"})"));
  EXPECT_THAT(difference(paired, usual),
              ElementsAre("table.compare.test: paired here, the default in the store"));
  EXPECT_THAT(canonical(rows + "table: {columns: [{name: acc, metric: val/top1, see: 0.3}]}\n"),
              testing::HasSubstr(R"("see":0.3)"));
}

TEST(DifferenceTest, SeedsOrderAndTableAreNamed) {
  EXPECT_THAT(difference(canonical("rows: [{id: a}, {id: b}]\nseeds: 2\n"),
                         canonical("rows: [{id: b}, {id: a}]\nseeds: [0, 1, 2]\n")),
              ElementsAre("row_order: [\"a\",\"b\"] here, [\"b\",\"a\"] in the store",
                          "seeds: [0,1] here, [0,1,2] in the store"));
  EXPECT_THAT(difference(canonical(std::string{"rows: [{id: a, paper: {acc: '1.0'}}]\n"} + kTable),
                         canonical(std::string{"rows: [{id: a, paper: {acc: '1.00'}}]\n"} + kTable)),
              ElementsAre("rows.a.paper.acc: 1.0 here, 1.00 in the store"));
  EXPECT_THAT(
      difference(
          canonical(std::string{"rows: [{id: a}]\n"} + kTable),
          canonical("rows: [{id: a}]\ntable: {columns: [{name: acc, metric: val/top1, digits: 1}]}\n")),
      ElementsAre("table.columns.acc.digits: 2 here, 1 in the store"));
}

TEST(DifferenceTest, ALongListIsCut) {
  const std::string factors =
      "factors: {recipe.lr: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "
      "12, 13]}\n";
  const auto lines = difference(canonical(factors), canonical("rows: [{id: a}]\n"));
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines.back(), "and 3 more differences");
}

}  // namespace
}  // namespace abl::sweeps
