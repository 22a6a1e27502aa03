// SPDX-License-Identifier: Apache-2.0
#include "cli/row_curves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/context.h"
#include "cli/report.h"
#include "cli/results_import.h"
#include "storage/database.h"
#include "tests/temporary_folder.h"

namespace abl::cli {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class RowCurvesTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  Context context;

  /// Row a has two seeds of so many steps, row b one that ends with NaN.
  std::unique_ptr<Source> source(int steps) {
    std::string csv = "row,seed,step,acc\n";
    for (int step = 0; step < steps; ++step) csv += fmt::format("a,0,{0},{0}\na,1,{0},{1}\n", step, step + 2);
    for (int step = 0; step < steps; ++step)
      csv += fmt::format("b,0,{},{}\n", step, step < steps / 2 ? "1" : "nan");
    write_file(folder / "s.csv", csv);
    {
      storage::Database db{folder / "results.db", storage::Database::Mode::kWrite};
      import_results(db, folder / "s.csv", {});
    }
    context.store_flag = (folder / "results.db").string();
    return open_source(context);
  }
};

TEST_F(RowCurvesTest, OfManyPointsAboutAsManyAsAPictureShowsAreKeptOfAllSeedsAtTheSameSteps) {
  const auto stored = source(10'001);
  const auto all = row_curves(*stored, stored->table("s", {.long_form = true}), {"acc"}, 1000);
  ASSERT_THAT(all.metrics.at("acc"), SizeIs(2));
  const Curve& curve = all.metrics.at("acc")[0];
  EXPECT_GT(curve.points.size(), 500u);
  EXPECT_LE(curve.points.size(), 1001u);
  EXPECT_EQ(curve.points.begin()->first, 0u);
  EXPECT_EQ(curve.points.rbegin()->first, 10'000u) << "the last point is there";
  for (const auto& [step, values] : curve.points)
    ASSERT_THAT(values, testing::ElementsAre(step, step + 2)) << "a mean is of both seeds";
  EXPECT_EQ(all.metrics.at("acc")[1].diverged_at, 5000u) << "to the step, whatever was left out";
}

TEST_F(RowCurvesTest, OfFewAllAreKept) {
  const auto stored = source(40);
  const auto all = row_curves(*stored, stored->table("s", {.long_form = true}), {"acc"}, 1000);
  EXPECT_THAT(all.metrics.at("acc")[0].points, SizeIs(40));
  EXPECT_THAT(all.said, testing::ElementsAre("acc"));
  EXPECT_THAT(report_html(*stored, "s"), HasSubstr("<svg"));
}

}  // namespace
}  // namespace abl::cli
