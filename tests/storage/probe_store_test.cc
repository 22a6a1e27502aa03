// SPDX-License-Identifier: Apache-2.0
#include "storage/probe_store.h"

#include <gmock/gmock.h>

#include "storage/removal.h"
#include "storage/table.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

protocol::ProbeResult norms(double last, double largest = 9) {
  return {.request = {.name = "feature-norms"}, .values = {{"last", last}, {"largest", largest}}};
}

class Probes : public StoreTest {
 protected:
  /// A sweep of two rows with a column that takes what a probe finds.
  void SetUp() override {
    auto text = sweep_of("s", 2, 1);
    text.sweep.columns.push_back({.name = "norm", .heading = "norm", .source = "probe:feature-norms/last"});
    text.sweep.probes = probes_json({protocol::read_probe("feature-norms")});
    submit(text);
    for (const TrialId trial : {1, 2}) runs_.push_back(complete(trial, 70));
  }
  const Cell& cell(std::size_t row) {
    table_ = read_table(db, "s");
    return table_.rows[row].cells.back();
  }
  std::int64_t rows_of(const std::string& table) {
    const std::string sql = "SELECT COUNT(*) FROM " + table;
    return db.prepared(sql.c_str()).one([](const Statement& row) { return row.integer(0); }).value();
  }
  ProbeStore probes{db};
  std::vector<RunId> runs_;
  Table table_;
};

TEST_F(Probes, WhatWasFoundStandsInTheTable) {
  EXPECT_EQ(cell(0).text, "not probed");
  EXPECT_EQ(cell(0).missing, "not probed; 'ablate probe s' does it");
  EXPECT_EQ(SweepStore{db}.get("s").trials.unfilled, 0u) << "no trial need run again for that";
  probes.put(runs_[0], norms(4.5), 100, {}, now);
  EXPECT_EQ(cell(0).mean, 4.5);
  EXPECT_EQ(cell(1).text, "not probed");
  probes.put(runs_[1], {.request = {.name = "feature-norms"}, .missing = "no tokens"}, 100, {}, now);
  EXPECT_EQ(cell(1).missing, "nothing to probe: no tokens");
}

TEST_F(Probes, TheNewestTakesThePlaceOfTheOneBefore) {
  probes.put(runs_[0], norms(4.5), 100, {{.name = "map", .sha256 = "a", .width = 2, .height = 3, .png = "x"}},
             now);
  protocol::ProbeResult again{.request = {.name = "feature-norms"}, .values = {{"last", 5}}};
  probes.put(runs_[0], again, 80,
             {{.name = "other", .sha256 = "b", .width = 1, .height = 1, .png = std::string("\0y", 2)}}, now);
  const auto stored = probes.of(runs_[0]);
  ASSERT_THAT(stored, SizeIs(1));
  EXPECT_EQ(stored[0].step, 80u);
  EXPECT_THAT(stored[0].pictures, ElementsAre(testing::Field(&StoredPicture::name, "other")));
  EXPECT_EQ(stored[0].pictures[0].png, "");
  EXPECT_EQ(probes.find(runs_[0], "feature-norms")->pictures[0].png, std::string("\0y", 2));
  EXPECT_EQ(cell(0).mean, 5);
  EXPECT_EQ(metrics.count(runs_[0]), 2u) << "val/top1, and the value that is found now";
  EXPECT_EQ(metrics.page(runs_[0], "probe:feature-norms/last", -1, 10).steps, std::vector<std::uint32_t>{80});
}

TEST_F(Probes, OfANameThatBeginsAsAnotherStay) {
  probes.put(runs_[0], norms(4.5), 100, {}, now);
  auto longer = norms(1);
  longer.request.name = "feature-norms2";
  probes.put(runs_[0], longer, 100, {}, now);
  probes.put(runs_[0], norms(6), 100, {}, now);
  EXPECT_EQ(metrics.count(runs_[0]), 5u);
}

TEST_F(Probes, SayNothingOfTheRunsCourse) {
  const auto before = trials.run(runs_[0]);
  const auto curves = [&] {
    return db.prepared("SELECT curves FROM run WHERE id = 1").one([](const Statement& row) {
      return row.integer(0);
    });
  };
  const auto digest = curves();
  now += std::chrono::hours{24};
  probes.put(runs_[0], norms(4.5), 100, {}, now);
  EXPECT_EQ(curves(), digest) << "an equal training that was not probed has equal curves";
  EXPECT_EQ(trials.run(runs_[0]).steps_per_second, before.steps_per_second);
  EXPECT_EQ(trials.run(runs_[0]).step, before.step);
}

TEST_F(Probes, ARunThatGoesOnFromAnotherHasNoneOfIts) {
  probes.put(runs_[0], norms(4.5), 100, {}, now);
  submit(sweep_of("t", 1, 1, "other"));
  const RunId run = lease(3).run;
  metrics.copy(runs_[0], run, 100);
  EXPECT_EQ(metrics.count(run), 1u);
}

TEST_F(Probes, ATableThatIsKeptHearsOfThem) {
  db.note_touched();
  probes.put(runs_[1], norms(4.5), 100, {}, now);
  EXPECT_THAT(db.take_touched().trials, ElementsAre(TrialId{2}));
}

TEST_F(Probes, OtherSettingsAreAnotherResult) {
  auto few = norms(3);
  few.request = protocol::read_probe({{"name", "feature-norms"}, {"images", 4}});
  probes.put(runs_[0], few, 100, {}, now);
  EXPECT_EQ(cell(0).text, "not probed") << "the sweep asks for 64 images";
  probes.put(runs_[0], norms(4.5), 100, {}, now);
  EXPECT_EQ(cell(0).mean, 4.5);
  EXPECT_THAT(probes.of(runs_[0]), SizeIs(2));
}

TEST_F(Probes, ThatNothingIsFoundNowTakesNothingAway) {
  probes.put(runs_[0], norms(4.5), 100, {}, now);
  probes.put(runs_[0], {.request = {.name = "feature-norms"}, .missing = "no memory"}, 100, {}, now);
  EXPECT_EQ(cell(0).mean, 4.5);
  EXPECT_EQ(probes.of(runs_[0]).at(0).missing, "");
}

TEST_F(Probes, AValueThatAProbeDoesNotFindIsNamed) {
  protocol::ProbeResult other{.request = {.name = "feature-norms"}, .values = {{"first", 1}, {"largest", 2}}};
  probes.put(runs_[0], other, 100, {}, now);
  EXPECT_EQ(cell(0).missing, "probe feature-norms finds no value 'last'; it found first, largest");
}

TEST_F(Probes, OfAProgramThatGoesOnStayWhatItFound) {
  probes.put(runs_[0], norms(4.5), 80, {{.name = "map", .sha256 = "a", .width = 2, .height = 3, .png = "x"}},
             now);
  submit(sweep_of("t", 1, 1, "other"));
  const RunId run = lease(3).run;
  probes.copy(runs_[0], run, 79, now);
  EXPECT_THAT(probes.of(run), IsEmpty());
  probes.copy(runs_[0], run, 80, now);
  EXPECT_EQ(probes.find(run, "feature-norms")->pictures.at(0).png, "x");
  EXPECT_THAT(metrics.names(run), SizeIs(2));
  EXPECT_THAT(error_of([&] { probes.expect_ended(run); }).second, HasSubstr("run 3 has not ended"));
  probes.expect_ended(runs_[0]);
  db.execute("UPDATE trial SET command_json = '[\"x\"]'");
  EXPECT_EQ(
      cell(1).missing,
      "not probed: its program sent no probe event named feature-norms, or its log says why it was not kept");
}

TEST_F(Probes, AreBounded) {
  for (std::size_t i = 0; i < protocol::kMostProbes; ++i)
    probes.put(runs_[0], {.request = {.name = "p" + std::to_string(i)}}, 1, {}, now);
  EXPECT_THAT(error_of([&] { probes.put(runs_[0], norms(1), 1, {}, now); }).second,
              HasSubstr("run 1 already has 100 probe results"));
  probes.put(runs_[0], {.request = {.name = "p3"}, .values = {{"x", 1}}}, 1, {}, now);
}

TEST_F(Probes, OfATrialAreThoseOfItsSweeps) {
  EXPECT_THAT(probes.wanted(1), ElementsAre(testing::Field(&protocol::ProbeRequest::name, "feature-norms")));
  auto other = sweep_of("other", 1, 1);
  other.sweep.probes =
      R"([{"name": "feature-norms", "images": 3}, {"name": "attention"}, {"name": "of-a-later-release"}])";
  submit(other);
  auto again = sweep_of("again", 1, 1);
  again.sweep.probes = R"([{"name": "feature-norms", "images": 64}])";
  submit(again);
  std::vector<std::string> keys;
  for (const auto& probe : probes.wanted(1)) keys.push_back(protocol::probe_key(probe));
  EXPECT_THAT(keys, ElementsAre("feature-norms", "feature-norms(images=3)", "attention"));
  EXPECT_THAT(probes.wanted(2), SizeIs(1));
  EXPECT_THAT(probes_json({}), IsEmpty());
}

TEST_F(Probes, GoWithTheirRun) {
  probes.put(runs_[0], norms(4.5), 100, {{.name = "map", .sha256 = "a", .width = 2, .height = 3, .png = "x"}},
             now);
  db.execute("UPDATE sweep SET state = 'cancelled'");
  Removal removal{db};
  removal.begin("s", now);
  while (removal.step(now, 1) == Removal::Step::kMore) continue;
  for (const char* table : {"run", "probe", "probe_picture", "point"}) EXPECT_EQ(rows_of(table), 0) << table;
}

}  // namespace
}  // namespace abl::storage
