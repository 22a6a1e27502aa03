// SPDX-License-Identifier: Apache-2.0
#include "planning/plan.h"

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "config/document/trial_document.h"
#include "planning/plan_time.h"
#include "storage/count_store.h"
#include "storage/worker_store.h"
#include "tests/storage/fixtures.h"

namespace abl::planning {
namespace {

using storage::StoreTest;
using testing::AllOf;
using testing::HasSubstr;

/// Answers for each line with its length as the count, and for "bad" with an error; notes each time it is
/// started.
class ModelCounterTest : public StoreTest {
 protected:
  ModelCounterTest() {
    std::ofstream script{trainer};
    script
        << "#!/bin/sh\n"
           "echo \"$@\" >> "
        << calls.string()
        << "\n"
           "while read -r line; do\n"
           "  if [ \"$line\" = bad ]; then echo '{\"error\": \"5 groups do not divide 384\"}'\n"
           "  else echo \"{\\\"counts\\\": {\\\"params.weights\\\": ${#line}, \\\"flops.macs\\\": 2}}\"; fi\n"
           "done\n";
    script.close();
    std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  }
  const std::filesystem::path trainer = folder / "trainer", calls = folder / "calls";
};

TEST_F(ModelCounterTest, OneProcessCountsAllModelsThatAreNotCached) {
  storage::CountStore{db}.insert("known", {{"params.weights", 7}});
  std::map<std::string, std::map<std::string, double>> fresh;
  const auto result = ModelCounter{trainer}.count({"known", "longer", "", "long", "longer"}, &db, &fresh);
  EXPECT_EQ(result.missing, "");
  EXPECT_EQ(result.counts.size(), 3u) << "a command has no model";
  EXPECT_EQ(result.counts.at("known").at("params.weights"), 7);
  EXPECT_EQ(result.counts.at("longer").at("params.weights"), 6);
  EXPECT_EQ(result.counts.at("long").at("flops.macs"), 2);
  EXPECT_EQ(fresh.size(), 2u);
  EXPECT_EQ(read_file(calls), "describe --stdin --json\n");
}

TEST_F(ModelCounterTest, NothingIsStartedWhenAllIsKnown) {
  storage::CountStore{db}.insert("known", {{"params.weights", 7}});
  ModelCounter{trainer}.count({"known"}, &db);
  EXPECT_FALSE(std::filesystem::exists(calls));
}

TEST_F(ModelCounterTest, ModelThatCannotBeCountedSaysWhyAndTheOthersAreCounted) {
  const auto result = ModelCounter{trainer}.count({"bad", "good"}, nullptr);
  EXPECT_EQ(result.missing, "5 groups do not divide 384");
  EXPECT_EQ(result.counts.size(), 1u);
}

TEST_F(ModelCounterTest, WithoutATrainerThePlanSaysWhatToDo) {
  ::unsetenv("ABLATE_TRAINER");
  const auto result = ModelCounter{}.count({"model"}, &db);
  EXPECT_TRUE(result.counts.empty());
  EXPECT_THAT(result.missing,
              testing::AllOf(HasSubstr("ablate-trainer not found"), HasSubstr("ABLATE_TRAINER")));
}

TEST_F(ModelCounterTest, TrainerIsFoundByTheEnvironment) {
  ::setenv("ABLATE_TRAINER", trainer.c_str(), 1);
  EXPECT_EQ(ModelCounter{}.count({"model"}, &db).counts.size(), 1u);
  ::unsetenv("ABLATE_TRAINER");
}

TEST_F(ModelCounterTest, TrainerThatFailsIsToldNotThrown) {
  std::ofstream{trainer} << "#!/bin/sh\necho 'no libtorch' >&2\nexit 127\n";
  EXPECT_THAT(ModelCounter{trainer}.count({"model"}, &db).missing, HasSubstr("no libtorch"));
  std::ofstream{trainer} << "#!/bin/sh\ncat > /dev/null\necho nonsense\n";
  EXPECT_THAT(ModelCounter{trainer}.count({"model"}, &db).missing, HasSubstr("nonsense"));
  std::ofstream{trainer} << "#!/bin/sh\ncat > /dev/null\n";
  EXPECT_THAT(ModelCounter{trainer}.count({"model"}, &db).missing, HasSubstr("0 of 1 models"));
}

class PlanTest : public StoreTest {
 protected:
  PlanTest() {
    spec.name = "s";
    spec.seeds = {0, 1};
    spec.data = "cifar10";
    for (const std::string id : {"a", "b", "twin"}) {
      sweeps::Row row{.id = id, .label = "row " + id, .set = {{"model.depth", "2"}}};
      row.config = id == "b" ? R"({"model":{"depth":2}})" : R"({"model":{"depth":1}})";
      row.config_hash = sha256_hex(row.config);
      row.model = "model " + row.config;
      spec.rows.push_back(row);
    }
  }
  /// Puts the trials of some rows of the spec into the store, as another sweep's.
  void store(const std::vector<int>& rows) {
    auto text = storage::sweep_of("other", 3, 2);
    text.trials.clear();
    for (const auto& trial : sweeps::expand(spec))
      if (std::ranges::find(rows, trial.row) != rows.end())
        text.trials.push_back({.row = trial.row,
                               .seed_index = trial.seed_index,
                               .seed = trial.seed,
                               .config = trial.config,
                               .config_hash = trial.config_hash,
                               .result_version = trial.result_version,
                               .data = spec.data});
    submit(text);
  }
  /// Starts a trial of row b's document on two threads of a processor, as another sweep's.
  storage::RunId start_row_b_elsewhere() {
    auto text = storage::sweep_of("earlier", 1, 1, "x");
    text.trials[0].config = spec.rows[1].config;
    text.sweep.rows[0].config_hash = spec.rows[1].config_hash;
    submit(text);
    const auto id = run(1);
    trials.start(id, {.total_steps = 80, .environment_json = R"({"device": "cpu", "threads": 2})"}, now);
    return id;
  }
  sweeps::SweepSpec spec;
};

TEST_F(PlanTest, EveryRowIsShownWithItsCountsAndTwinsAreNamed) {
  ModelCounter::Result counts{.counts = {{spec.rows[1].model, {{"params.weights", 5e6}}}},
                              .missing = "because"};
  const auto plan = planning::plan(spec, nullptr, counts);
  ASSERT_EQ(plan.rows_size(), 3);
  EXPECT_EQ(plan.sweep(), "s");
  EXPECT_EQ(plan.seeds(), 2u);
  EXPECT_EQ(plan.trials(), 4u) << "the twin's are those of row a";
  EXPECT_EQ(plan.counts_missing(), "because");
  EXPECT_EQ(plan.rows(0).trials(), 2u);
  EXPECT_EQ(plan.rows(0).same_as(), "");
  EXPECT_EQ(plan.rows(2).same_as(), "a");
  EXPECT_EQ(plan.rows(1).counts().at("params.weights"), 5e6);
  EXPECT_TRUE(plan.rows(0).counts().empty());
  EXPECT_EQ(plan.rows(1).set().at("model.depth"), "2");
  EXPECT_EQ(plan.rows(1).config_hash(), spec.rows[1].config_hash);
}

TEST_F(PlanTest, EarlierRunsOfTheSameRowsOrOfTheSameWorkSayWhenItWouldBeComplete) {
  auto earlier = storage::sweep_of("earlier", 1, 1, "x");
  earlier.sweep.rows[0].config_hash = spec.rows[0].config_hash;
  earlier.sweep.rows[0].work_hash = spec.rows[0].work_hash = spec.rows[1].work_hash = "work";
  submit(earlier);
  EXPECT_EQ(planning::plan(spec, &db, {}).forecast().unknown(), "no trial of rows a, b has completed");
  trials.end(run(1), {.state = storage::RunState::kCompleted, .took = std::chrono::seconds{100}}, now);
  EXPECT_EQ(planning::plan(spec, &db, {}).forecast().unknown(), "no worker is connected");
  storage::WorkerStore{db}.upsert({.name = "alice",
                                   .slots_json = R"([{"index":0,"device":"cpu"},{"index":1,"device":"cpu"}])",
                                   .data_json = R"(["cifar10"])",
                                   .weights_json = "[]",
                                   .result_version = 9,
                                   .connected = true});
  const auto forecast = planning::plan(spec, &db, {}).forecast();
  EXPECT_NEAR(forecast.seconds(), 200, 1) << "four trials in two slots";
  EXPECT_EQ(forecast.runs(), 1u) << "for both rows";
  EXPECT_FALSE(planning::plan(spec, nullptr, {}).has_forecast());
}

/// Two rows whose step of 7 images takes 980 bytes and 10 for each, or 900 and 4; the optimiser 1000 or 1200.
ModelCounter::Result count_memory(sweeps::SweepSpec& spec) {
  ModelCounter::Result counts;
  spec.rows.pop_back();
  for (auto& row : spec.rows) {
    row.batch = 7;
    row.precision = row.id == "b" ? config::Precision::kBFloat16 : config::Precision::kFloat32;
    counts.counts[row.model] = {{"memory.state", 1000},    {"memory.state.bf16", 1200},
                                {"memory.base.fp32", 980}, {"memory.base.bf16", 900},
                                {"memory.image.fp32", 10}, {"memory.image.bf16", 4}};
  }
  return counts;
}

/// What a row's own training step takes, and its teacher.
double step_of(const ablate::v1::PlanRow& row) {
  return row.memory_parts().at("step") + row.memory_parts().at("teacher");
}

TEST_F(PlanTest, MemoryOfAStepFollowsFromBatchAndPrecision) {
  const auto plan = planning::plan(spec, nullptr, count_memory(spec));
  EXPECT_EQ(step_of(plan.rows(0)), 1050);
  EXPECT_EQ(step_of(plan.rows(1)), 1200) << "the optimiser's";
  EXPECT_EQ(plan.memory_bytes(), plan.rows(1).memory_bytes());
  EXPECT_EQ(plan.memory_missing(), "");
  EXPECT_EQ(plan.gpus(), 0u);
}

TEST_F(PlanTest, MemoryHoldsARunningAverageToo) {
  auto counts = count_memory(spec);
  spec.rows[0].more_weights = 1;
  counts.counts[spec.rows[0].model]["params.all"] = 25;
  EXPECT_EQ(step_of(plan(spec, nullptr, counts).rows(0)), 1150);
}

TEST_F(PlanTest, MemoryHoldsTheTeacherWhoseAnswerComesBeforeTheStep) {
  auto counts = count_memory(spec);
  auto& row = spec.rows[0];
  row.teacher = "teacher";
  EXPECT_FALSE(plan(spec, nullptr, counts).rows(0).has_memory_bytes()) << "it is not counted yet";
  auto& teacher = counts.counts["teacher"];
  teacher = {{"memory.weights", 500}, {"memory.forward.base.fp32", 20}, {"memory.forward.image.fp32", 1}};
  counts.counts[row.model]["params.all"] = 100;
  EXPECT_EQ(step_of(plan(spec, nullptr, counts).rows(0)), 500 + 1050) << "the student's step";
  teacher["memory.forward.image.fp32"] = 100;
  EXPECT_EQ(step_of(plan(spec, nullptr, counts).rows(0)), 500 + (1000 - 400) + 20 + 7 * 100)
      << "the teacher's answer, with the optimiser's state and without gradients";
  spec.gpus = 2;
  EXPECT_EQ(step_of(plan(spec, nullptr, counts).rows(0)), 500 + 1020);
}

TEST_F(PlanTest, MemoryIsThatOfEachGpuWhichTakesItsPartOfTheBatch) {
  const auto counts = count_memory(spec);
  spec.gpus = 2;
  const auto plan = planning::plan(spec, nullptr, counts);
  EXPECT_EQ(step_of(plan.rows(0)), 1020) << "4 of the 7 images";
  EXPECT_EQ(plan.gpus(), 2u);
}

/// A worker with two slots of two CPU threads.
void connect_cpus(storage::Database& db) {
  storage::WorkerStore{db}.upsert(
      {.name = "alice",
       .slots_json =
           R"([{"index":0,"device":"cpu","name":"2 threads","threads":2},{"index":1,"device":"cpu","threads":2}])",
       .data_json = R"(["cifar10", "shapes"])",
       .weights_json = "[]",
       .result_version = 99,
       .connected = true});
}

TEST_F(PlanTest, MemoryOfACpuIsTheWholeProcessThatOfAGpuWhatLiesThere) {
  const auto counts = count_memory(spec);
  const auto on_gpu = plan(spec, nullptr, counts);
  EXPECT_EQ(on_gpu.memory_device(), "cuda") << "no worker is connected: one is assumed";
  EXPECT_FALSE(on_gpu.rows(0).memory_parts().contains("checkpoint")) << "it lies in the host's memory";
  EXPECT_NEAR(on_gpu.rows(0).memory_bytes(), (512 + 96) * 0x1p20, 2000);
  connect_cpus(db);
  const auto on_cpu = plan(spec, &db, counts);
  EXPECT_EQ(on_cpu.memory_device(), "cpu");
  EXPECT_NEAR(on_cpu.rows(0).memory_bytes(), (112 + 31 + 3) * 0x1p20, 2000);
  EXPECT_NEAR(on_cpu.rows(1).memory_bytes(), (112 + 31 + 3 + 16) * 0x1p20, 2000) << "16 bits";
}

TEST_F(PlanTest, MemoryHoldsTheFeaturesAmongWhichNearestAreLookedFor) {
  const auto counts = count_memory(spec);
  connect_cpus(db);
  auto& row = spec.rows[0];
  row.batch = 100;
  const auto planned = [&](const char* task) {
    auto document = config::canonical_document(config::read_trial_or_throw(config::Json::parse(
        R"({"model": {"family": "vit", "dim": 48, "depth": 2, "heads": 2, "patch": 8},
            "data": {"name": "shapes", "train_images": 4000, "val_images": 200}, "recipe": {"use": "demo", "batch": 100},
            "seed": 0, "task": )" +
        std::string{task} + "}")));
    document.erase("seed");
    row.config = config::canonical_json(document);
    const auto planned = plan(spec, &db, counts);
    const auto& parts = planned.rows(0).memory_parts();
    return std::map<std::string, double>{parts.begin(), parts.end()};
  };
  const auto probe = planned(R"({"kind": "probe-knn", "bank": 1000})");
  EXPECT_EQ(probe.at("neighbours"), 4 * 1000 * 48 + 4 * 1000 * 100) << "and similarities of a batch to them";
  EXPECT_EQ(planned(R"({"kind": "probe-knn"})").at("neighbours"), 4 * 4000 * 48 + 4 * 4000 * 100);
  const auto plain = planned(R"({"kind": "classify"})");
  EXPECT_FALSE(plain.contains("neighbours"));
  const auto views = planned(R"({"kind": "dino", "local_views": 4, "local_size": 16})");
  EXPECT_EQ(views.at("loader"), 3 * plain.at("loader")) << "two whole views and four of a quarter";
}

/// Two rows of the demo's model that are trained for 4 and 2 epochs of 40 steps.
ModelCounter::Result real_rows(sweeps::SweepSpec& spec) {
  ModelCounter::Result counts;
  spec.rows.pop_back();
  spec.data = "shapes";
  for (int i = 0; i < 2; ++i) {
    const auto trial = config::read_trial_or_throw(config::Json::parse(
        R"({"model": {"preset": "simple-vit-nano"}, "data": {"name": "shapes", "train_images": 4000, "val_images": 200},
            "recipe": {"lr": 0.001, "batch": 100, "epochs": )" +
        std::to_string(4 - 2 * i) + R"(}, "seed": 0})"));
    auto document = config::canonical_document(trial);
    document.erase("seed");
    auto& row = spec.rows[static_cast<std::size_t>(i)];
    row.config = config::canonical_json(document);
    row.config_hash = sha256_hex(row.config);
    row.model = config::canonical_model_text(trial);
    counts.counts[row.model] = {{"flops.macs", 1e6}};
  }
  return counts;
}

storage::Calibration measured_of(const sweeps::Row& row) {
  return {.device = "a CPU",
          .threads = 2,
          .step_hash = step_hash(*trial_of(row.config)),
          .config = row.config,
          .time = Time{} + std::chrono::seconds{1},
          .step_seconds = 0.1,
          .steps = 9,
          .image_seconds = 0.01,
          .start_seconds = 1,
          .checkpoint_seconds = 1};
}

TEST_F(PlanTest, TimeOfWhatLearnsNothingFollowsFromItsImages) {
  auto counts = real_rows(spec);
  auto& row = spec.rows[0];
  const auto probe = config::read_trial_or_throw(config::Json::parse(
      R"({"model": {"family": "vit", "dim": 48, "depth": 2, "heads": 2, "patch": 8},
          "data": {"name": "shapes", "train_images": 4000, "val_images": 200},
          "task": {"kind": "probe-knn"}, "recipe": {"batch": 100}, "seed": 0})"));
  auto document = config::canonical_document(probe);
  document.erase("seed");
  row.config = config::canonical_json(document);
  row.model = config::canonical_model_text(probe);
  counts.counts[row.model] = {{"flops.macs", 1e6}};
  auto measured = measured_of(row);
  measured.step_seconds = 0, measured.steps = 0;
  const auto plan = planning::plan(spec, nullptr, counts, {measured});
  EXPECT_EQ(plan.rows(0).time().from(), "calibration");
  EXPECT_NEAR(plan.rows(0).time().value(), 1 + (4000 + 200) * 0.01 + 1, 1e-6);
}

TEST_F(PlanTest, TimeFollowsFromACalibrationJustMadeOrKeptInTheStore) {
  const auto counts = real_rows(spec);
  const auto plan = planning::plan(spec, nullptr, counts, {measured_of(spec.rows[0])});
  EXPECT_EQ(plan.rows(0).time().from(), "calibration");
  EXPECT_NEAR(plan.rows(0).time().value(), 1 + 160 * 0.1 + 4 * 200 * 0.01 + 1, 1e-6);
  EXPECT_NEAR(plan.rows(1).time().value(), 1 + 80 * 0.1 + 2 * 200 * 0.01 + 1, 1e-6) << "the same step";
  EXPECT_NEAR(plan.rows(0).gpu_hours().value(), 2 * 26.0 / 3600, 1e-6) << "two seeds";
  EXPECT_NEAR(plan.gpu_hours().value(), 2 * (26.0 + 14) / 3600, 1e-6);
  EXPECT_LT(plan.gpu_hours().low(), plan.gpu_hours().value());
  ASSERT_GE(plan.time_from_size(), 1);
  EXPECT_EQ(plan.time_from(0), "time of 2 rows: from a calibration of its own step on a CPU, 2 threads");

  storage::MeasuredStore{db}.keep(measured_of(spec.rows[0]));
  connect_cpus(db);
  const auto later = planning::plan(spec, &db, counts);
  EXPECT_EQ(later.rows(0).time().from(), "calibration");
  EXPECT_NEAR(later.forecast().seconds(), (2 * 26 + 2 * 14) / 2, 8)
      << "four trials in two slots: " << later.forecast().DebugString();
  EXPECT_EQ(later.forecast().predicted(), 4u);
}

TEST_F(PlanTest, CompletedRunsOfOtherTrialsGiveTheRateAndThoseOfARowItsTime) {
  const auto counts = real_rows(spec);
  connect_cpus(db);
  const auto id = start_row_b_elsewhere();
  trials.end(id, {.state = storage::RunState::kCompleted, .took = std::chrono::seconds{102}},
             now + Milliseconds{102'000});
  storage::CountStore{db}.insert(spec.rows[0].model, counts.counts.begin()->second);
  const auto plan = planning::plan(spec, &db, counts);
  EXPECT_EQ(plan.rows(1).time().from(), "runs");
  EXPECT_NEAR(plan.rows(1).time().value(), 102, 1e-6);
  EXPECT_EQ(plan.rows(1).time().why(), "1 run");
  EXPECT_EQ(plan.rows(0).time().from(), "like");
  EXPECT_NEAR(plan.rows(0).time().value(), 200, 6) << "twice as long, but for the start";
  EXPECT_EQ(plan.gpu_hours().from(), "like") << "the least sure";
}

TEST_F(PlanTest, ARunWhoseProcessorOthersUsedDoesNotMakeItsRowSlow) {
  const auto counts = real_rows(spec);
  connect_cpus(db);
  const auto id = start_row_b_elsewhere();
  metrics.append(id, {{.name = "images_per_s", .steps = {40, 80}, .values = {5, 400}, .times_ms = {1, 2}}});
  trials.end(id, {.state = storage::RunState::kCompleted, .took = std::chrono::seconds{1002}},
             now + Milliseconds{1'002'000});
  storage::CountStore{db}.insert(spec.rows[0].model, counts.counts.begin()->second);
  const auto plan = planning::plan(spec, &db, counts);
  EXPECT_EQ(plan.rows(1).time().from(), "runs");
  EXPECT_NEAR(plan.rows(1).time().value(), 8000 / (0.85 * 400), 6) << "at the rate of its fastest steps";
  EXPECT_GE(plan.rows(1).time().high(), 1002) << "but it took as long once";
  EXPECT_EQ(plan.rows(1).time().why(), "1 run that shared its processor");
  EXPECT_NEAR(plan.rows(0).time().value(), 16000 / (0.85 * 400), 8) << "nor the others";
  EXPECT_THAT(plan.time_from(plan.time_from_size() - 1), HasSubstr("other programs used the processor"));
}

TEST_F(PlanTest, WithoutAnyMeasurementTimeFollowsFromFlopsAndAStatedRateAndSaysSo) {
  const auto counts = real_rows(spec);
  const auto plan = planning::plan(spec, nullptr, counts);
  EXPECT_EQ(plan.rows(0).time().from(), "flops");
  EXPECT_THAT(plan.time_from(0), AllOf(HasSubstr("NVIDIA A100"), HasSubstr("because no worker is connected"),
                                       HasSubstr("3 times too long or too short")));
  EXPECT_EQ(planning::plan(spec, nullptr, {}).time_missing(), "its FLOPs are not known");
  spec.command = sweeps::Command{.argv = {"true"}};
  EXPECT_EQ(planning::plan(spec, nullptr, {}).time_missing(), "no run of it has completed");
}

TEST_F(PlanTest, WhereMemoryIsNotKnownThePlanSaysWhy) {
  auto counts = count_memory(spec);
  counts.counts[spec.rows[0].model].erase("memory.image.fp32");
  auto plan = planning::plan(spec, nullptr, counts);
  EXPECT_FALSE(plan.rows(0).has_memory_bytes());
  EXPECT_EQ(plan.memory_bytes(), plan.rows(1).memory_bytes()) << "the largest that is known";
  EXPECT_EQ(plan.memory_missing(), "not predicted by ablate-trainer");

  counts = {.counts = {}, .missing = "no ablate-trainer"};
  plan = planning::plan(spec, nullptr, counts);
  EXPECT_FALSE(plan.has_memory_bytes());
  EXPECT_EQ(plan.memory_missing(), "no ablate-trainer");

  spec.command = sweeps::Command{.argv = {"true"}};
  EXPECT_EQ(planning::plan(spec, nullptr, {}).memory_missing(), "unknown for command: trials");
}

TEST_F(PlanTest, WhatNoConnectedWorkerHasIsNotedOnce) {
  spec.rows[0].weights = spec.rows[1].weights = {{"deit", ""}, {"regnet", ""}};
  EXPECT_TRUE(plan(spec, &db, {}).notes().empty()) << "no worker is there to say";
  storage::WorkerStore{db}.upsert(
      {.name = "alice", .data_json = R"(["shapes"])", .weights_json = R"(["deit"])", .connected = true});
  EXPECT_THAT(plan(spec, &db, {}).notes(),
              testing::ElementsAre(
                  "no connected worker has the data set cifar10: start one with --data cifar10=FOLDER",
                  "no connected worker has the weights regnet: start one with --weights regnet=FILE"));
}

TEST_F(PlanTest, TrialsOfTheStoreAreCountedByWhatTheyDo) {
  store({0, 1});  // trials 1 2 (seed 0), 3 4 (seed 1)
  complete(1, 80);
  trials.end(lease(2).run, {.state = storage::RunState::kFailed, .retryable = false}, now);
  const auto plan = planning::plan(spec, &db, {});
  EXPECT_EQ(plan.stored(), 1u);
  EXPECT_EQ(plan.under_way(), 2u) << "a failed one will run again";
  EXPECT_EQ(plan.rows(0).stored(), 1u);
  EXPECT_EQ(plan.rows(0).under_way(), 1u);
  EXPECT_EQ(plan.rows(1).under_way(), 1u);
  EXPECT_EQ(plan.rows(2).stored(), 1u) << "each row counts its own";
}

TEST_F(PlanTest, ASubmittedSweepIsPlannedFromItsOwnTrials) {
  auto text = storage::sweep_of("s", 3, 2);
  spec.canonical = "{\"name\":\"s\"}";
  spec.command = sweeps::Command{.argv = {"./train"}};  // never reused by another sweep
  text.sweep.canonical_hash = sha256_hex(spec.canonical);
  submit(text);
  complete(1, 80);
  complete(2, 80);
  trials.end(lease(3).run, {.state = storage::RunState::kFailed, .retryable = false}, now);
  const auto plan = planning::plan(spec, &db, {});
  EXPECT_TRUE(plan.submitted());
  EXPECT_EQ(plan.rows(0).stored() + plan.rows(1).stored() + plan.rows(2).stored(), 2u);
  EXPECT_EQ(plan.rows(0).under_way() + plan.rows(1).under_way() + plan.rows(2).under_way(), 3u);
  spec.canonical = "{}";
  EXPECT_FALSE(planning::plan(spec, &db, {}).submitted()) << "another content of that name";
  EXPECT_EQ(planning::plan(spec, &db, {}).rows(0).stored(), 0u);
}

TEST_F(PlanTest, HeldTrialsAreNotPromisedToRun) {
  store({0, 1});
  db.execute("UPDATE trial SET state = 'held' WHERE id = 2");
  const auto plan = planning::plan(spec, &db, {});
  EXPECT_EQ(plan.held(), 1u);
  EXPECT_EQ(plan.under_way(), 3u);
  EXPECT_THAT(plan.notes(), testing::Contains(AllOf(HasSubstr("1 trial is held"),
                                                    HasSubstr("'ablate retry " + spec.name + " --held'"))));
}

TEST_F(PlanTest, ResultsOfAnotherTrainerVersionAreNotTheSame) {
  store({0, 1});
  complete(1, 80);
  complete(2, 80);
  EXPECT_EQ(plan(spec, &db, {}).stored(), 2u);
  spec.rows[1].result_version = 2;
  const auto plan = planning::plan(spec, &db, {});
  EXPECT_EQ(plan.stored(), 1u);
  EXPECT_EQ(plan.rows(0).stored(), 1u) << "which the change does not touch";
  EXPECT_EQ(plan.rows(1).stored(), 0u);
}

TEST_F(PlanTest, ResultsFromBeforeAMendAreCountedApart) {
  for (auto& row : spec.rows) row.result_version = 1;
  store({0, 1});
  complete(1, 80);
  complete(2, 80);
  spec.rows[1].result_version = 2;
  const auto plan = planning::plan(spec, &db, {});
  EXPECT_EQ(plan.stored(), 1u);
  EXPECT_EQ(plan.before_mend(), 1u);
  EXPECT_EQ(plan.rows(0).before_mend(), 0u);
  EXPECT_EQ(plan.rows(1).before_mend(), 1u);
  EXPECT_THAT(plan.notes(),
              testing::Contains(HasSubstr("results from before a correction will be trained again")));
}

TEST_F(PlanTest, NamesTheCountsThatTheTableWillShow) {
  using Kind = sweeps::Column::Kind;
  spec.table.columns = {{.name = "acc", .kind = Kind::kMetric, .source = "val/top1"},
                        {.name = "flops",
                         .heading = "FLOPs",
                         .kind = Kind::kCount,
                         .source = "flops.msf",
                         .unit = protocol::Unit::kBillion,
                         .digits = 1}};
  const auto plan = planning::plan(spec, nullptr, {});
  ASSERT_EQ(plan.columns_size(), 1);
  EXPECT_EQ(plan.columns(0).source(), "flops.msf");
  EXPECT_EQ(plan.columns(0).heading(), "FLOPs");
  EXPECT_EQ(plan.columns(0).digits(), 1u);
}

TEST_F(PlanTest, TheTrialsByWhichRowsAreTunedAreCountedApartAndOfLaterRungsThoseThatWillBe) {
  const auto planned = [&](const std::string& more) {
    return plan(sweeps::parse_sweep("ablate: 1\nname: s\ncommand: {argv: [t, '{params.lr}', '{params.e}', "
                                    "'{params.split}'], params: {lr: 1, e: 4, split: all}}\nseeds: 3\n"
                                    "rows: [{id: a}, {id: b}]\ntable: {columns: [{name: acc, metric: acc}]}\n"
                                    "tune: {params.lr: {min: 1, max: 2}, budget: 4, metric: acc, held_out: "
                                    "{params.split: tune}" +
                                        more + "}\n",
                                    "s.yaml"),
                &db, {}, {});
  };
  EXPECT_EQ(planned(", on: seeds 100-101").rows(0).trials(), 3u);
  EXPECT_EQ(planned(", on: seeds 100-101").tuning().trials(), 8u) << "both rows are one configuration";
  EXPECT_EQ(planned(", halving: {key: params.e}").tuning().trials(), 6u) << "4 points, then 2";
}

TEST_F(PlanTest, CommandIsTakenFromTheStoreOnlyWhenItMayBeReused) {
  store({0});
  complete(1, 80);
  spec.command = sweeps::Command{.argv = {"true"}, .version = "1"};
  EXPECT_EQ(plan(spec, &db, {}).stored(), 0u);
  spec.command->reuse = true;
  EXPECT_EQ(plan(spec, &db, {}).stored(), 1u);
}

}  // namespace
}  // namespace abl::planning
