// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_text.h"

#include <gtest/gtest.h>

#include "tests/golden.h"

namespace abl::cli {
namespace {

using ablate::v1::PlanRow;
using ablate::v1::SweepPlan;

SweepPlan sample_plan() {
  SweepPlan plan;
  plan.set_sweep("msf-sharing");
  plan.set_seeds(2);
  plan.set_trials(4);
  plan.set_stored(1);
  for (const auto& [id, label, weights, memory] : {std::tuple{"o", "Original", 21'906'432.0, 21e9},
                                                   {"r", "MSF, full", 23'675'904.0, 23.5e9},
                                                   {"s", "the same", 23'675'904.0, 23.5e9}}) {
    PlanRow& row = *plan.add_rows();
    row.set_id(id);
    row.set_label(label);
    (*row.mutable_counts())["params.weights"] = weights;
    (*row.mutable_counts())["flops.macs"] = 4.2e9;
    row.set_memory_bytes(memory);
    row.set_trials(2);
  }
  plan.set_memory_bytes(23.5e9);
  plan.mutable_rows(0)->set_stored(1);
  (*plan.mutable_rows(1)->mutable_set())["model.attention.kernel"] = "gaussian";
  (*plan.mutable_rows(1)->mutable_set())["model.attention.probe"] = "inside";
  plan.mutable_rows(2)->set_same_as("r");
  plan.add_notes("no worker has the data set imagenet-1k");
  return plan;
}

const Terminal kPlain{stdout, false, false, 0, 0};

TEST(PlanText, ShowsEveryRowAndTheTotals) {
  expect_golden("cli", "plan.txt", plan_text(sample_plan(), kPlain));
}

TEST(PlanText, SaysHowLongEachTrialTakesAndFromWhat) {
  SweepPlan plan = sample_plan();
  auto& time = *plan.mutable_rows(0)->mutable_time();
  time.set_value(100), time.set_low(80), time.set_high(125);
  plan.mutable_rows(0)->mutable_gpu_hours()->set_value(0.0278);
  auto& all = *plan.mutable_gpu_hours();
  all.set_value(12.34), all.set_low(4.56), all.set_high(31.2);
  plan.add_time_from("time of 1 row: from completed runs");
  plan.set_time_missing("its FLOPs are not known");
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("a trial takes"), std::string::npos) << text;
  EXPECT_NE(text.find("1m 40s  1m 20s to 2m 05s           0.028"), std::string::npos) << text;
  EXPECT_NE(text.find("what is left takes 12 GPU hours (4.6 to 31); a slot without a GPU counts as one\n"
                      "time of 1 row: from completed runs\n– time is not known: its FLOPs are not known\n"),
            std::string::npos)
      << text;
}

TEST(PlanText, SettingsAreWholeInAPipeAndCutToATerminalsWidth) {
  SweepPlan plan = sample_plan();
  const std::string long_value(100, 'x');
  (*plan.mutable_rows(1)->mutable_set())["model.attention.share"] = long_value;
  EXPECT_NE(plan_text(plan, kPlain).find(long_value), std::string::npos);
  const std::string narrow = plan_text(plan, Terminal{stdout, true, false, 80, 25});
  EXPECT_EQ(narrow.find(long_value), std::string::npos);
  EXPECT_NE(narrow.find("…"), std::string::npos);
}

TEST(PlanText, CallsRowsThatFactorsMadeByTheirLevelsAlone) {
  SweepPlan plan;
  for (const char* lr : {"0.05", "0.1"})
    for (const char* name : {"sgd", "adam"}) {
      PlanRow& row = *plan.add_rows();
      row.set_id(std::string{"lr="} + lr + ",name=" + name);
      row.set_label(std::string{"lr="} + lr + ", name=" + name);
      (*row.mutable_set())["params.lr"] = lr;
      (*row.mutable_set())["params.name"] = name;
      row.set_trials(2);
    }
  plan.set_memory_missing("unknown for command: trials");
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("lr    name  trials  stored\n0.05  sgd        2       0\n"), std::string::npos)
      << "and without columns of counts that a command does not have:\n"
      << text;
  (*plan.mutable_rows(0)->mutable_set())["params.momentum"] = "0.9";
  EXPECT_NE(plan_text(plan, kPlain).find("momentum=0.9"), std::string::npos)
      << "a level may have set more than its name says";
}

TEST(PlanText, SaysWhyCountsAreMissing) {
  SweepPlan plan = sample_plan();
  for (auto& row : *plan.mutable_rows()) row.clear_counts();
  plan.set_counts_missing("no ablate-trainer beside the scheduler");
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("params and FLOPs are not known: no ablate-trainer beside the scheduler"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("21.91"), std::string::npos);
}

TEST(PlanText, CountsSmallModelsInMillionsOfMultiplyAdds) {
  SweepPlan plan = sample_plan();
  for (auto& row : *plan.mutable_rows()) (*row.mutable_counts())["flops.macs"] = 3'867'904;
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("FLOPs (M)"), std::string::npos) << text;
  EXPECT_NE(text.find(" 3.87 "), std::string::npos) << text;
  (*plan.mutable_rows(0)->mutable_counts())["flops.macs"] = 0.1e9;
  EXPECT_NE(plan_text(plan, kPlain).find("FLOPs (G)"), std::string::npos)
      << "one unit for all, by the largest";
}

TEST(PlanText, CountsThatFitNoUnitAreWholeNumbers) {
  SweepPlan plan = sample_plan();
  for (auto& row : *plan.mutable_rows()) (*row.mutable_counts())["params.weights"] = 31'040;
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find(" 31040 "), std::string::npos) << text;
  EXPECT_EQ(text.find("31040."), std::string::npos) << text;
}

TEST(PlanText, SaysOfHowManyGpusTheMemoryIs) {
  SweepPlan plan = sample_plan();
  plan.set_gpus(4);
  EXPECT_NE(plan_text(plan, kPlain)
                .find("memory is what a trial on each of its 4 GPUs takes at most, as predicted: 21.89 GiB"),
            std::string::npos);
}

TEST(PlanText, ShowsLittleMemoryInMebibytes) {
  SweepPlan plan = sample_plan();
  for (auto& row : *plan.mutable_rows()) row.set_memory_bytes(64 << 20);
  plan.set_memory_bytes(64 << 20);
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("memory (MiB)"), std::string::npos) << text;
  EXPECT_NE(text.find("at most, as predicted: 64.00 MiB"), std::string::npos) << text;
}

TEST(PlanText, SaysWhyMemoryIsMissing) {
  SweepPlan plan = sample_plan();
  plan.mutable_rows(1)->clear_memory_bytes();
  plan.set_memory_missing("unknown for command: trials");
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("23.68       4.20             –"), std::string::npos) << text;
  EXPECT_NE(text.find("– memory is not known: unknown for command: trials"), std::string::npos);
  for (auto& row : *plan.mutable_rows()) row.clear_counts(), row.clear_memory_bytes();
  plan.clear_memory_bytes();
  plan.set_counts_missing("no ablate-trainer");
  plan.set_memory_missing("no ablate-trainer");
  EXPECT_NE(plan_text(plan, kPlain).find("– params, FLOPs and memory are not known: no ablate-trainer"),
            std::string::npos)
      << "one reason is told once";
}

TEST(PlanText, ShowsTheCountsOfTheSweepsOwnColumnsAsTheTableWill) {
  SweepPlan plan = sample_plan();
  for (auto& row : *plan.mutable_rows()) (*row.mutable_counts())["flops.msf"] = 4.605e9;
  auto& column = *plan.add_columns();
  column.set_name("flops");
  column.set_heading("FLOPs");
  column.set_kind(ablate::v1::Column::KIND_COUNT);
  column.set_source("flops.msf");
  column.set_unit("G");
  column.set_digits(2);
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("params (M)  FLOPs (G)"), std::string::npos) << text;
  EXPECT_NE(text.find("4.61"), std::string::npos) << text;
  EXPECT_EQ(text.find("4.20"), std::string::npos) << "multiply-adds are not what the table has";
  EXPECT_NE(text.find("params are of weight matrices alone: the table has no column of them"),
            std::string::npos);
  column.set_source("params.all");
  column.set_heading("all params");
  column.set_unit("M");
  EXPECT_NE(plan_text(plan, kPlain).find("all params (M)  FLOPs (G)"), std::string::npos);
}

TEST(PlanText, SaysHowManyResultsAreFromBeforeAMend) {
  SweepPlan plan = sample_plan();
  EXPECT_EQ(plan_text(plan, kPlain).find("before a correction"), std::string::npos);
  plan.set_before_mend(1);
  plan.mutable_rows(0)->set_before_mend(1);
  EXPECT_NE(plan_text(plan, kPlain).find("stored  before a correction"), std::string::npos);
}

TEST(PlanText, WhatOtherSweepsTrainIsNotCountedAsToRun) {
  SweepPlan plan = sample_plan();
  plan.set_under_way(2);
  EXPECT_NE(plan_text(plan, kPlain).find("1 stored, 2 under way for other sweeps, 1 to run"),
            std::string::npos);
}

TEST(PlanText, SaysThatASweepIsSubmittedAlready) {
  SweepPlan plan = sample_plan();
  plan.set_under_way(2);
  plan.set_submitted(true);
  const std::string text = plan_text(plan, kPlain);
  EXPECT_NE(text.find("1 stored, 2 under way, 1 failed or cancelled\n"
                      "submitted already: 'ablate submit' queues nothing, 'ablate retry "),
            std::string::npos)
      << text;
  plan.set_under_way(3);
  EXPECT_NE(plan_text(plan, kPlain).find("3 under way\nsubmitted already: 'ablate submit' queues nothing\n"),
            std::string::npos);
}

}  // namespace
}  // namespace abl::cli
