// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "views/views.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

// proto/typescript.cc says the same as types, and web/app/src/contract.test.ts has the same texts.

TEST(Json, NumbersThatAreNotFiniteAndThoseOf64BitsAreTexts) {
  v1::CellRun run;
  run.set_run(7);
  run.set_seed(-3);
  run.set_value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(to_json(run), R"({"run":7,"trial":0,"seed":"-3","value":"NaN","not_finite":0})");
  run.set_value(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_json(run), R"({"run":7,"trial":0,"seed":"-3","value":"-Infinity","not_finite":0})");
}

TEST(Json, EmptyListsAndZerosAreThereAndWhatIsUnsetIsNot) {
  EXPECT_EQ(to_json(v1::Cell{}),
            R"({"n":0,"of":0,"text":"","paper":"","missing":"","runs":[],"unfilled":0,"before_mend":0})");
  EXPECT_EQ(to_json(v1::RunSeries{}), R"({"run":0})");
}

TEST(Json, EnumerationsAreTheirNamesTimesAreTextsAndMapsAreObjects) {
  v1::SweepSummary sweep;
  sweep.set_state(v1::SWEEP_STATE_ACTIVE);
  sweep.mutable_created()->set_seconds(1'700'000'000);
  EXPECT_EQ(to_json(sweep), R"({"name":"","state":"SWEEP_STATE_ACTIVE","rows":0,"seeds":0,"priority":0,)"
                            R"("created":"2023-11-14T22:13:20Z"})");
  v1::PlanRow row;
  (*row.mutable_counts())["params.all"] = 5;
  EXPECT_EQ(to_json(row),
            R"({"id":"","label":"","set":{},"counts":{"params.all":5},"trials":0,"stored":0,"under_way":0,)"
            R"("config_hash":"","same_as":"","before_mend":0})");
}

}  // namespace
}  // namespace abl::views
