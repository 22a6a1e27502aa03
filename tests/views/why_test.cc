// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/fixtures.h"
#include "views/comparison.h"
#include "views/convert.h"
#include "views/table_cache.h"
#include "views/views.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WhyTest : public storage::StoreTest {
 protected:
  v1::WhyResponse ask(const std::string& row, const std::string& column, const std::string& sweep = "s") {
    v1::WhyRequest request;
    request.set_sweep(sweep);
    request.set_row(row);
    request.set_column(column);
    v1::WhyResponse whole = why(db, request);
    TableCache tables{folder / "results.db"};
    storage::Database reader{folder / "results.db", storage::Database::Mode::kReadOnly};
    EXPECT_EQ(why(reader, tables, request).SerializeAsString(), whole.SerializeAsString());
    return whole;
  }
};

TEST_F(WhyTest, OfATableThatIsKeptACellCostsTheSameHoweverManyRowsThereAre) {
  submit(storage::sweep_of("small", 2, 3));             // trials 1 to 6
  submit(storage::sweep_of("large", 26, 3, "others"));  // 7 to 84
  for (storage::TrialId trial = 1; trial <= 84; ++trial) complete(trial, trial);
  TableCache tables{folder / "results.db"};
  storage::Database reader{folder / "results.db", storage::Database::Mode::kReadOnly};
  const auto steps_of = [&](const std::string& sweep) {
    v1::WhyRequest request;
    request.set_sweep(sweep), request.set_row("b"), request.set_column("acc");
    (void)tables.table(reader, sweep);
    const std::int64_t before = reader.steps();
    (void)why(reader, tables, request);
    return reader.steps() - before;
  };
  EXPECT_LT(steps_of("large") * 2, steps_of("small") * 3);
}

TEST_F(WhyTest, AnExpressionHasEachSeedsValueOfEachPart) {
  auto text = storage::sweep_of("s", 2, 2);
  text.sweep.columns.push_back({.name = "gain",
                                .heading = "gain",
                                .kind = storage::Column::Kind::kExpression,
                                .source = "acc - baseline.acc + 0 * paper.acc"});
  submit(text);  // trials 1 2 (seed 0), 3 4 (seed 1)
  complete(1, 60), complete(3, 62), complete(2, 70);
  const storage::RunId last = complete(4, 73);
  const auto cell = ask("b", "gain");
  ASSERT_THAT(cell.parts(), SizeIs(3));
  EXPECT_EQ(cell.parts(0).name(), "acc");
  EXPECT_EQ(cell.parts(0).row(), "b");
  EXPECT_TRUE(cell.parts(0).by_seed());
  ASSERT_THAT(cell.parts(0).values(), SizeIs(2));
  EXPECT_EQ(cell.parts(0).values(0).value(), 70);
  EXPECT_EQ(cell.parts(0).values(1).value(), 73);
  EXPECT_EQ(cell.parts(0).values(1).run().summary().id(), last);
  EXPECT_EQ(cell.parts(1).name(), "baseline.acc");
  EXPECT_EQ(cell.parts(1).row(), "a");
  EXPECT_FALSE(cell.parts(1).by_seed()) << "its mean, for each seed";
  ASSERT_THAT(cell.parts(1).values(), SizeIs(2));
  EXPECT_EQ(cell.parts(1).values(1).value(), 62);
  EXPECT_EQ(cell.parts(2).name(), "paper.acc");
  EXPECT_EQ(cell.parts(2).text(), "79.71");
  ASSERT_THAT(cell.values(), SizeIs(2));
  EXPECT_DOUBLE_EQ(cell.values(0).value(), 70 - 61);
  EXPECT_DOUBLE_EQ(cell.values(1).value(), 73 - 61);
  EXPECT_EQ(cell.values(1).step(), 0u) << "a value that is computed is of no step";
  EXPECT_THAT(cell.how(), HasSubstr("mean over 2 seeds of acc - baseline.acc"));
}

TEST_F(WhyTest, NotesOfOtherRowsAreNotACells) {
  submit(storage::sweep_of("s", 3, 1));
  complete(1, 60);
  for (const storage::TrialId trial : {2u, 3u}) {
    const auto id = run(trial);
    metrics.append(
        id, {{.name = "val/top1", .steps = {1}, .values = {static_cast<double>(trial)}, .times_ms = {0}}});
    metrics.add_refused(id, trial, "a line (expected a number)");
    end(id, storage::RunState::kCompleted);
  }
  EXPECT_THAT(ask("b", "acc").notes(), ElementsAre(AllOf(HasSubstr("row b"), HasSubstr("2 metric reports"))));
  EXPECT_THAT(ask("c", "acc").notes(), Contains(HasSubstr("row c")));
  EXPECT_THAT(ask("a", "acc").notes(), IsEmpty());
}

TEST_F(WhyTest, ARunSaysHowLongItTookAndThatItRunsFromTheStartOfItsProgram) {
  submit(storage::sweep_of("s", 1, 1));
  const auto id = lease(1).run;
  trials.launch(id, now, now);
  EXPECT_EQ(ask("a", "acc").values(0).state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_TRUE(ask("a", "acc").values(0).run().summary().has_started());
  trials.end(id, {.state = storage::RunState::kCompleted, .took = Milliseconds{2500}}, {now, now});
  EXPECT_DOUBLE_EQ(ask("a", "acc").values(0).run().summary().took_seconds(), 2.5);
}

TEST_F(WhyTest, ACellOfAPivotIsFoundByItsLineAndLevel) {
  auto text = storage::sweep_of("s", 4, 1);
  for (int i = 0; i < 4; ++i)
    text.sweep.rows[static_cast<std::size_t>(i)].set_json =
        i % 2 == 0 ? R"({"groups":1,"share":")" + std::to_string(i / 2) + R"("})"
                   : R"({"groups":8,"share":")" + std::to_string(i / 2) + R"("})";
  text.sweep.canonical = R"({"table":{"pivot":{"by":"groups","columns":["acc"]},"columns":[]}})";
  submit(text);
  complete(1, 60), complete(2, 61), complete(3, 62), complete(4, 63);
  const v1::Table lines = pivoted(table(db, "s"));
  ASSERT_THAT(lines.rows(), SizeIs(2));
  EXPECT_EQ(ask(lines.rows(1).id(), "acc[8]").row(), "d");
  EXPECT_EQ(ask("c", "acc").row(), "c") << "a row by its own name";
}

}  // namespace
}  // namespace abl::views
