// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "storage/change_log.h"
#include "storage/count_store.h"
#include "storage/table.h"
#include "tests/storage/fixtures.h"
#include "views/comparison.h"
#include "views/convert.h"
#include "views/table_cache.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::RunId;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two models on two data sets, one of four combinations lacking; accuracy by data set.
storage::SweepText study(std::size_t count = 3) {
  auto text = storage::sweep_of("s", static_cast<int>(count), 2);  // trials 1 2 3 (seed 0), 4 5 6 (seed 1)
  const char* const rows[][4] = {{"orig-c10", "Original, C10", "dot", "cifar10"},
                                 {"orig-c100", "Original, C100", "dot", "cifar100"},
                                 {"msf-c10", "MSF, C10", "gaussian", "cifar10"},
                                 {"msf-c100", "MSF, C100", "gaussian", "cifar100"}};
  for (std::size_t i = 0; i < count; ++i) {
    auto& row = text.sweep.rows[i];
    row.id = rows[i][0], row.label = rows[i][1];
    row.set_json = std::string{R"({"model.attention.kernel":")"} + rows[i][2] + R"(","data.name":")" +
                   rows[i][3] + "\"}";
  }
  text.sweep.columns[2].source = "model.attention.kernel";
  text.sweep.columns.push_back({.name = "loss", .heading = "loss", .source = "val/loss"});
  text.sweep.columns.push_back(
      {.name = "data", .heading = "data", .kind = storage::Column::Kind::kSetting, .source = "data.name"});
  text.sweep.baseline = "orig-c10";
  text.sweep.canonical = R"({"table":{"pivot":{"by":"data.name","columns":["acc"]},"columns":[]}})";
  return text;
}

class PivotTest : public storage::StoreTest {
 protected:
  v1::Table read() { return pivoted(to_proto(storage::read_table(db, "s"))); }
};

std::vector<std::string> texts(const v1::TableRow& row) {
  std::vector<std::string> texts;
  for (const auto& cell : row.cells()) texts.push_back(cell.text());
  return texts;
}

TEST_F(PivotTest, RowsThatDifferInTheFactorAloneAreALine) {
  submit(study());
  complete(1, 80), complete(4, 82), complete(2, 50), complete(3, 84), complete(6, 85);
  storage::CountStore{db}.insert("{\"model\":\"a\"}", {{"params.weights", 21e6}});
  storage::CountStore{db}.insert("{\"model\":\"b\"}", {{"params.weights", 22e6}});
  const v1::Table table = read();
  EXPECT_TRUE(table.pivoted());
  std::vector<std::string> columns;
  for (const auto& column : table.columns()) columns.push_back(column.name());
  EXPECT_THAT(columns, ElementsAre("acc[cifar10]", "acc[cifar100]", "params", "share"));
  EXPECT_EQ(table.columns(1).level(), "cifar100");
  EXPECT_EQ(table.columns(1).of(), "acc");
  ASSERT_EQ(table.rows_size(), 2);
  const v1::TableRow &original = table.rows(0), &msf = table.rows(1);
  EXPECT_EQ(original.id(), "orig");
  EXPECT_EQ(original.label(), "Original");
  EXPECT_EQ(msf.id(), "msf-c10") << "a row that stands alone keeps its name";
  EXPECT_THAT(texts(original), ElementsAre("81.00 ± 1.41", "50.00", "21.00 / 22.00", "dot"));
  EXPECT_EQ(original.cells(0).row(), "orig-c10");
  EXPECT_EQ(original.cells(1).row(), "orig-c100");
  EXPECT_EQ(original.cells(1).paper(), "79.71");
  EXPECT_EQ(original.cells(1).paper_difference(), "-29.71");
  EXPECT_FALSE(original.cells(2).has_mean()) << "of rows that differ there is no one number";
  EXPECT_THAT(original.cells(2).missing(), HasSubstr("21.00 of orig-c10, 22.00 of orig-c100"));
  EXPECT_EQ(msf.cells(1).text(), "–");
  EXPECT_EQ(msf.cells(1).missing(), "no row has data.name = cifar100 here");
  EXPECT_EQ(msf.cells(0).row(), "") << "its line's";
  EXPECT_EQ(original.trials().completed(), 3u);
  EXPECT_EQ(table.baseline(), "orig");
  EXPECT_THAT(table.notes().Get(table.notes_size() - 1), HasSubstr("loss: not in this form"));
}

TEST_F(PivotTest, ACellIsComparedWithTheBaselinesOfItsLevel) {
  submit(study());
  complete(1, 80), complete(4, 80.1), complete(2, 50), complete(5, 50.1), complete(3, 90), complete(6, 90.1);
  const v1::Table table = read();
  EXPECT_EQ(table.rows(1).cells(0).comparison().verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_EQ(table.rows(0).cells(1).comparison().verdict(), v1::Comparison::VERDICT_UNSPECIFIED)
      << "the baseline's line, whatever the level";
}

TEST_F(PivotTest, EveryNumberOfABaselineIsOfTheRowOfTheSameLevel) {
  auto text = study(4);
  text.sweep.columns.push_back({.name = "gain",
                                .heading = "gain",
                                .kind = storage::Column::Kind::kExpression,
                                .source = "acc - baseline.acc"});
  text.sweep.canonical = R"({"table":{"pivot":{"by":"data.name","columns":["acc","gain"]},"columns":[]}})";
  submit(text);  // trials 1 2 3 4 (seed 0), 5 6 7 8 (seed 1)
  complete(1, 80), complete(5, 80.1), complete(2, 50), complete(6, 50.2);
  complete(3, 90), complete(7, 90.1), complete(4, 55), complete(8, 55.2);
  v1::Table table = to_proto(storage::read_table(db, "s"));
  EXPECT_EQ(table.rows(3).baseline(), "orig-c100");
  EXPECT_EQ(table.rows(1).baseline(), "orig-c100") << "itself: it is no row that is worse";
  EXPECT_NEAR(table.rows(3).cells(5).mean(), 5, 0.2) << "not -25 from the other data set's";
  EXPECT_EQ(table.rows(3).cells(0).comparison().verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_THAT(table.compare().legend(), HasSubstr("the baseline with the same data.name"));
  const v1::Table lines = pivoted(table);
  add_statistics(table);
  EXPECT_EQ(table.rows(3).cells(0).statistics().baseline(), "orig-c100");
  EXPECT_EQ(lines.rows(1).cells(2).p_corrected(), table.rows(3).cells(0).p_corrected())
      << "one number, whichever form shows it";
  EXPECT_TRUE(lines.rows(1).cells(0).comparison().best());
  EXPECT_TRUE(lines.rows(1).cells(2).comparison().best()) << "of its level";
  EXPECT_THAT(storage::baselines_of(db, "s"), ElementsAre("orig-c10", "orig-c100", "orig-c10", "orig-c100"));
}

TEST_F(PivotTest, ARowOfALevelThatTheBaselineLacksHasNone) {
  auto text = study();
  text.sweep.baseline = "msf-c10";
  text.sweep.columns.push_back({.name = "gain",
                                .heading = "gain",
                                .kind = storage::Column::Kind::kExpression,
                                .source = "acc - baseline.acc"});
  submit(text);
  complete(1, 80), complete(2, 50), complete(3, 90);
  v1::Table table = to_proto(storage::read_table(db, "s"));
  EXPECT_EQ(table.rows(1).baseline(), "");
  EXPECT_FALSE(table.rows(1).cells(5).has_mean());
  EXPECT_THAT(table.rows(1).cells(5).missing(), HasSubstr("the baseline has no row at 'cifar100'"));
  add_statistics(table);
  EXPECT_EQ(table.rows(1).cells(0).statistics().baseline(), "");
  EXPECT_EQ(table.rows(0).cells(0).statistics().baseline(), "msf-c10");
}

TEST_F(PivotTest, FactorsGiveTheirNamesAndACombinationThatIsThereTwiceIsAnotherLine) {
  auto text = storage::sweep_of("s", 4, 1);
  const char* const ids[] = {"groups=1,layout=block", "groups=1,layout=row", "groups=2,layout=block",
                             "other"};
  const char* const sets[] = {
      R"({"m.groups":"1","m.layout":"block"})", R"({"m.groups":"1","m.layout":"row"})",
      R"({"m.groups":"2","m.layout":"block"})", R"({"m.groups":"2","m.layout":"block"})"};
  for (std::size_t i = 0; i < 4; ++i)
    text.sweep.rows[i].id = ids[i], text.sweep.rows[i].label = ids[i], text.sweep.rows[i].set_json = sets[i];
  text.sweep.canonical = R"({"table":{"pivot":{"by":"m.layout","columns":["acc"]},"columns":[]}})";
  submit(text);
  const v1::Table table = read();
  ASSERT_EQ(table.rows_size(), 3);
  EXPECT_EQ(table.rows(0).id(), "groups=1");
  EXPECT_EQ(table.rows(1).id(), "groups=2");
  EXPECT_EQ(table.rows(2).id(), "other");
  EXPECT_EQ(table.columns(0).level(), "block");
}

TEST_F(PivotTest, ATableThatIsGivenUpHasTheNotesOfOneThatIsKept) {
  auto text = study();
  text.sweep.rows[1].marks["acc"] = {.mark = protocol::Mark::kDoubtful, .why = "a footnote"};
  submit(text);
  complete(1, 80), complete(4, std::nan(""));
  const storage::Table table = storage::read_table(db, "s");
  const v1::Table kept = to_proto(table), given = to_proto(storage::read_table(db, "s"));
  ASSERT_EQ(kept.notes_size(), 2);
  EXPECT_THAT(kept.notes(0), HasSubstr("a footnote"));
  EXPECT_THAT(kept.notes(1), HasSubstr("row orig-c10, seed 1 diverged: val/top1 is not finite at its end"));
  EXPECT_EQ(given.SerializeAsString(), kept.SerializeAsString());
}

TEST_F(PivotTest, BothFormsAreKeptAndBroughtUpToDate) {
  submit(study());
  storage::ChangeLog log;
  TableCache tables{folder / "results.db"};
  EXPECT_EQ(tables.table(db, "s")->rows(), 2u);
  EXPECT_EQ(tables.table(db, "s", true)->rows(), 3u);
  complete(2, 50);
  const v1::Table line = tables.table(db, "s")->part({.count = 1});
  ASSERT_EQ(line.rows_size(), 1);
  EXPECT_EQ(line.left_out(), 1u) << "a page is of lines";
  EXPECT_EQ(line.rows(0).cells(1).text(), "50.00");
  EXPECT_EQ(tables.table(db, "s", true)->part({.first = 1, .count = 1}).rows(0).cells(0).text(), "50.00");
}

}  // namespace
}  // namespace abl::views
