// SPDX-License-Identifier: Apache-2.0
// The views that people read with sqlite3 or pandas, and the examples of docs/results-file.md.
#include <limits>

#include "base/file.h"
#include "storage/count_store.h"
#include "storage/table.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;

class ResultsViewsTest : public StoreTest {
 protected:
  ResultsViewsTest() {
    submit(sweep_of("msf-sharing", 3, 3));  // trials 1 2 3 (seed 0), 4 5 6 (seed 1), 7 8 9 (seed 2)
    CountStore{db}.insert("{\"model\":\"a\"}", {{"params.weights", 23'685'000}});
    CountStore{db}.insert("{\"model\":\"b\"}", {{"params.weights", 16'596'480}});
    complete(1, 79.1);
    complete(4, 80.3);
    complete(7, 78.7);
    complete(2, 61.1);
  }
  /// Every row of a query, its columns joined by '|'.
  std::vector<std::string> rows(const std::string& sql, int columns) {
    auto statement = std::make_unique<std::string>(sql);  // `prepared` keeps the pointer
    auto result = db.prepared(statement->c_str()).all([columns](const Statement& row) {
      std::string text;
      for (int i = 0; i < columns; ++i) text += (i ? "|" : "") + (row.is_null(i) ? "NULL" : row.text(i));
      return text;
    });
    kept_.push_back(std::move(statement));
    return result;
  }

 private:
  std::vector<std::unique_ptr<std::string>> kept_;
};

TEST_F(ResultsViewsTest, TableCellEqualsTheTableThatIsPrinted) {
  const Table table = read_table(db, "msf-sharing");
  int compared = 0;
  for (const TableRow& row : table.rows)
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      auto& select = db.prepared(R"sql(SELECT n, mean, sd, paper, setting FROM table_cell
                                       WHERE sweep = 'msf-sharing' AND row = :row AND "column" = :column)sql");
      select.bind(":row", row.id).bind(":column", table.columns[i].name);
      ASSERT_TRUE(select.step());
      const Cell& cell = row.cells[i];
      EXPECT_EQ(select.integer(0), cell.n);
      EXPECT_EQ(select.is_null(1), !cell.mean) << row.id << " " << table.columns[i].name;
      EXPECT_EQ(select.is_null(2), !cell.sd);
      if (cell.mean) {
        EXPECT_NEAR(select.real(1), *cell.mean, 1e-12 * *cell.mean);
        ++compared;
      }
      if (cell.sd) {
        EXPECT_NEAR(select.real(2), *cell.sd, 1e-12);
      }
      EXPECT_EQ(select.text(3), cell.paper);
      if (table.columns[i].kind == Column::Kind::kSetting) {
        EXPECT_EQ(select.text(4), cell.text);
      }
      EXPECT_FALSE(select.step()) << "one line for each cell";
    }
  EXPECT_EQ(compared, 4) << "two metrics, two counts";
}

TEST_F(ResultsViewsTest, TableCellTakesTheBestThatTheColumnSaysAndCountsWhatIsMissing) {
  auto text = sweep_of("fids", 2, 1, "fid");
  text.sweep.columns = {{.name = "fid",
                         .heading = "fid",
                         .kind = Column::Kind::kMetric,
                         .source = "distance",
                         .take = protocol::Take::kBest,
                         .better = protocol::Better::kLower}};
  submit(text);
  const RunId id = run(10);
  metrics.append(id,
                 {{.name = "distance", .steps = {1, 2, 3}, .values = {40, 10, 25}, .times_ms = {1, 2, 3}}});
  end(id, RunState::kCompleted);
  complete(11, 3);
  EXPECT_THAT(rows("SELECT row, n, mean, missing, before_mend FROM table_cell WHERE sweep = 'fids'", 5),
              ElementsAre("a|1|10.0|0|0", "b|0|NULL|1|0"));
}

TEST_F(ResultsViewsTest, TableCellCountsTheRunsThatDiverged) {
  auto text = sweep_of("s", 1, 2, "diverged");
  text.sweep.columns.clear();
  for (const auto take : values_of<protocol::Take>())
    text.sweep.columns.push_back({.name = std::string{name_of(take)},
                                  .heading = std::string{name_of(take)},
                                  .kind = Column::Kind::kMetric,
                                  .source = "loss",
                                  .take = take,
                                  .better = protocol::Better::kLower});
  submit(text);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [trial, values] :
       std::map<TrialId, std::vector<double>>{{10, {4, 2, nan}}, {11, {4, nan, 2}}}) {
    const RunId id = run(trial);
    metrics.append(id, {{.name = "loss", .steps = {1, 2, 3}, .values = values, .times_ms = {1, 2, 3}}});
    end(id, RunState::kCompleted);
  }
  EXPECT_THAT(rows("SELECT \"column\", n, mean, diverged FROM table_cell WHERE sweep = 's'", 4),
              testing::UnorderedElementsAre("last|2|NULL|1", "best|2|2.0|2", "min|2|2.0|2", "max|2|4.0|2",
                                            "mean|2|3.0|2"));
  EXPECT_THAT(rows("SELECT SUM(diverged) FROM table_cell WHERE sweep = 'msf-sharing'", 1), ElementsAre("0"));
}

TEST_F(ResultsViewsTest, TableCellHasTheNewestCountOfEachArchitectureAsTheTable) {
  db.execute(
      "UPDATE model_count SET version = version - 1 WHERE model_hash = (SELECT model_hash FROM sweep_row "
      "WHERE id = 'b')");
  EXPECT_THAT(rows("SELECT row, mean FROM table_cell WHERE \"column\" = 'params' ORDER BY row", 2),
              ElementsAre("a|23685000.0", "b|16596480.0", "c|NULL"));
}

TEST_F(ResultsViewsTest, TableCellHasNoMeanWhereAValueIsNotFinite) {
  complete(5, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(rows("SELECT n, mean, sd FROM table_cell WHERE row = 'b' AND \"column\" = 'acc'", 3),
              ElementsAre("2|NULL|NULL"));
}

TEST_F(ResultsViewsTest, TrialSummaryShowsStateAndLastMetrics) {
  trials.set_waiting(3, "all slots are busy");
  end(lease(5).run, RunState::kFailed, "out of memory");
  const auto lines = rows(
      "SELECT row, seed, state, reason, attempt, worker, last FROM trial_summary WHERE sweep = 'msf-sharing'",
      7);
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines[0], "a|0|completed||1|alice|{\"val/top1\":79.1}");
  EXPECT_EQ(lines[6], "c|0|queued|all slots are busy|0|NULL|{}");
}

TEST_F(ResultsViewsTest, MetricPointShowsEveryRunAndMarksTheNewest) {
  const RunId first = run(3);
  metrics.append(first, {{.name = "val/top1",
                          .steps = {1, 2},
                          .values = {10, std::numeric_limits<double>::infinity()},
                          .times_ms = {1, 2}}});
  end(first, RunState::kLost);
  const RunId second = run(3);
  metrics.append(second, {{.name = "val/top1", .steps = {1}, .values = {11}, .times_ms = {3}}});
  EXPECT_THAT(rows("SELECT seed, attempt, newest, metric, step, value, kind FROM metric_point WHERE row = "
                   "'c' ORDER BY attempt, step",
                   7),
              ElementsAre("0|1|0|val/top1|1|10.0|NULL", "0|1|0|val/top1|2|NULL|Infinity",
                          "0|2|1|val/top1|1|11.0|NULL"));
}

TEST_F(ResultsViewsTest, EveryExampleOfTheDocumentationAnswers) {
  const std::string text = read_file(std::filesystem::path{ABLATE_SOURCE_DIR} / "docs/results-file.md");
  const std::string open = "```sql\n", close = "```";
  int examples = 0;
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at + 1)) {
    const std::size_t start = at + open.size();
    const std::string sql = text.substr(start, text.find(close, start) - start);
    EXPECT_FALSE(rows(sql, 3).empty()) << sql;
    ++examples;
  }
  EXPECT_EQ(examples, 3);
}

}  // namespace
}  // namespace abl::storage
