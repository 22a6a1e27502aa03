// SPDX-License-Identifier: Apache-2.0
// Tables that their readers pivot.
#include "views/picked_pivot.h"

#include <gmock/gmock.h>

#include "tests/error_of.h"
#include "tests/views/reads_fixture.h"
#include "views/comparison.h"
#include "views/convert.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two factors of two levels, the first row the baseline of all.
class PickedPivotTest : public ReadsTest {
 protected:
  PickedPivotTest() {
    auto text = storage::sweep_of("s", 4, 2);  // trials 1 to 4 (seed 0), 5 to 8 (seed 1)
    const char* const ids[] = {"groups=1,layout=block", "groups=1,layout=row", "groups=2,layout=block",
                               "groups=2,layout=row"};
    const char* const sets[] = {
        R"({"m.groups":"1","m.layout":"block"})", R"({"m.groups":"1","m.layout":"row"})",
        R"({"m.groups":"2","m.layout":"block"})", R"({"m.groups":"2","m.layout":"row"})"};
    for (std::size_t i = 0; i < 4; ++i)
      text.sweep.rows[i].id = text.sweep.rows[i].label = ids[i], text.sweep.rows[i].set_json = sets[i];
    text.sweep.baseline = ids[0];
    submit(text);
    for (storage::TrialId trial = 1; trial <= 4; ++trial) {
      complete(trial, 50 + 10.0 * trial);
      complete(trial + 4, 50.2 + 10.0 * trial);
    }
  }
  v1::Table by(const std::vector<std::string>& factors) {
    return pivoted_by(db, to_proto(storage::read_table(db, "s")), factors);
  }
  std::pair<Code, std::string> refusal(const std::vector<std::string>& factors) {
    return storage::error_of([&] { by(factors); });
  }
};

std::vector<std::string> columns(const v1::Table& table) {
  std::vector<std::string> names;
  for (const auto& column : table.columns()) names.push_back(column.name());
  return names;
}

TEST_F(PickedPivotTest, AFactorIsKnownByItsNameAndByItsKey) {
  for (const char* name : {"layout", "m.layout"}) {
    const v1::Table table = by({name});
    EXPECT_TRUE(table.pivoted());
    EXPECT_EQ(table.pivot().by(), "layout");
    EXPECT_THAT(table.pivot().picked(), ElementsAre("m.layout"));
    EXPECT_THAT(columns(table), ElementsAre("acc[block]", "acc[row]", "params", "share"));
    ASSERT_EQ(table.rows_size(), 2);
    EXPECT_EQ(table.rows(0).id(), "groups=1");
    EXPECT_EQ(table.rows(1).cells(1).row(), "groups=2,layout=row");
    EXPECT_EQ(table.rows(1).cells(1).text(), "90.10 ± 0.14");
  }
}

TEST_F(PickedPivotTest, SeveralFactorsLieAlongTheColumnsTogether) {
  const v1::Table table = by({"layout", "groups"});
  EXPECT_THAT(columns(table),
              ElementsAre("acc[block, 1]", "acc[block, 2]", "acc[row, 1]", "acc[row, 2]", "params", "share"));
  ASSERT_EQ(table.rows_size(), 1);
  EXPECT_EQ(table.rows(0).id(), "all");
  EXPECT_EQ(table.rows(0).cells(2).row(), "groups=1,layout=row");
}

TEST_F(PickedPivotTest, ALayoutChangesNoComparison) {
  v1::Table flat = to_proto(storage::read_table(db, "s"));
  const v1::Table table = by({"layout"});
  const v1::Cell& cell = table.rows(1).cells(1);  // groups=2,layout=row
  EXPECT_EQ(cell.p(), flat.rows(3).cells(0).p());
  EXPECT_EQ(cell.p_corrected(), flat.rows(3).cells(0).p_corrected());
  EXPECT_EQ(cell.difference(), "+30.00") << "from groups=1,layout=block, not from the line above";
  EXPECT_EQ(table.rows(0).cells(1).difference(), "+10.00");
  EXPECT_FALSE(table.rows(0).cells(0).has_difference()) << "the baseline itself";
  for (const auto& line : table.rows()) EXPECT_FALSE(is_baseline(table, line)) << line.id();
  EXPECT_EQ(table.notes().Get(table.notes_size() - 1),
            "pivoted by layout: each cell is compared with row groups=1,layout=block, also across columns");
}

TEST_F(PickedPivotTest, TheBestIsOfEachColumn) {
  const v1::Table table = by({"groups"});
  ASSERT_EQ(table.rows_size(), 2);
  EXPECT_EQ(table.rows(1).id(), "layout=row");
  EXPECT_TRUE(table.rows(1).cells(0).comparison().best());
  EXPECT_TRUE(table.rows(1).cells(1).comparison().best());
  EXPECT_FALSE(table.rows(0).cells(1).comparison().best());
}

TEST_F(PickedPivotTest, AWrongNameIsToldWithTheNearest) {
  EXPECT_EQ(
      refusal({"layuot"}),
      std::pair(
          Code::kInvalidArgument,
          std::string{"s cannot be pivoted by 'layuot'; expected groups or layout; did you mean 'layout'?"}));
  EXPECT_EQ(refusal({"layout", "m.layout"}).second, "pivot: duplicate factor 'm.layout' (m.layout)");
  EXPECT_EQ(storage::error_of([] { factors_named("a,,b"); }).second,
            "pivot: expected comma-separated factors, such as groups,layout; got 'a,,b'");
  EXPECT_EQ(storage::error_of([] { factors_named("a,a"); }).second, "pivot: duplicate factor 'a'");
  EXPECT_THAT(factors_named(""), testing::IsEmpty());
}

TEST_F(PickedPivotTest, TheReadsHaveItInTheirParameters) {
  const json factors = ask("sweeps/*/factors", {}, "s").at("factors");
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_EQ(factors[0],
            (json{{"name", "groups"}, {"key", "m.groups"}, {"levels", 2}, {"first_levels", {"1", "2"}}}));
  const json table = ask("sweeps/*/table", {{"pivot", "layout"}, {"count", "1"}}, "s");
  EXPECT_EQ(table.at("rows").size(), 1u);
  EXPECT_EQ(table.at("left_out"), 1);
  EXPECT_EQ(table.at("columns")[0].at("level"), "block");
  EXPECT_EQ(ask("sweeps/*/table", {{"pivot", ""}}, "s").at("rows").size(), 4u) << "none is picked";
  EXPECT_THAT(storage::error_of([&] {
                ask("sweeps/*/table", {{"pivot", "layout"}, {"long_form", "1"}}, "s");
              }).second,
              HasSubstr("cannot be combined"));
}

TEST_F(PickedPivotTest, ATableOfTodayIsPivotedAndNotOneOfBefore) {
  TableCache tables{folder / "results.db"};
  const auto before = tables.pivoted(db, "s", {"layout"});
  EXPECT_EQ(tables.pivoted(db, "s", {"layout"}), before) << "kept for the next part";
  EXPECT_NE(tables.pivoted(db, "s", {"groups"}), before);
  db.execute("UPDATE trial SET state = 'queued', run_id = NULL WHERE id = 4");
  const auto after = tables.pivoted(db, "s", {"layout"});
  EXPECT_NE(after, before);
  EXPECT_EQ(after->row(1).cells(1).n(), 1u);
}

TEST_F(PickedPivotTest, MoreLevelsThanCanBeReadAreRefused) {
  auto text = storage::sweep_of("many", 51, 1);
  for (std::size_t i = 0; i < 51; ++i) {
    text.sweep.rows[i].id = text.sweep.rows[i].label = "x=" + std::to_string(i);
    text.sweep.rows[i].model = "{}";
    text.sweep.rows[i].set_json = R"({"p.x":)" + std::to_string(i) + "}";
  }
  submit(text);
  EXPECT_EQ(
      storage::error_of([&] { pivoted_by(db, to_proto(storage::read_table(db, "many")), {"x"}); }).second,
      "pivot: 51 levels of x in many; expected at most 50");
}

}  // namespace
}  // namespace abl::views
