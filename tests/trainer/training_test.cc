// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/training.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "config/document/trial_document.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/training/checked_tensors.h"

namespace abl::trainer {
namespace {

using TrainingTest = SmallTraining;

TEST_F(TrainingTest, ReportsEveryEpochAndTheEnd) {
  Recorder said;
  EXPECT_TRUE(training::Training(options(), said).run(said.stop));
  EXPECT_EQ(said.started.total_steps, 30);
  EXPECT_FALSE(said.started.resumed_step);
  EXPECT_FALSE(said.started.data_fingerprint.empty());
  ASSERT_EQ(said.points["val/top1"].size(), 3u);
  EXPECT_TRUE(said.points["val/top1"].contains(30));
  EXPECT_EQ(said.points["train/loss"].size(), 30u);
  EXPECT_LT(said.points["train/loss"][30], said.points["train/loss"][1]) << "three epochs teach it something";
  EXPECT_EQ(said.newest_step, 30);
}

TEST_F(TrainingTest, TheSameSeedGivesTheSameBitsAndAnotherSeedDoesNot) {
  Recorder one, again, other;
  training::Training(options(1), one).run(one.stop);
  training::Training(options(1), again).run(again.stop);
  training::Training(options(2), other).run(other.stop);
  EXPECT_EQ(one.points, again.points);
  expect_same_weights(one, again);
  EXPECT_NE(one.points, other.points);
}

TEST_F(TrainingTest, AStoppedRunGoesOnAsIfItHadNeverStopped) {
  Recorder whole;
  training::Training(options(), whole).run(whole.stop);
  for (const std::int64_t stop_at : {1, 9, 10, 17, 29}) expect_goes_on_as(whole, options(), stop_at);
}

TEST_F(TrainingTest, ImagesThatAreHeldOutAreEvaluatedAndLeaveShorterEpochs) {
  auto holding = options();
  holding.trial.data.held_out = 0.3;
  Recorder said, whole;
  training::Training(holding, said).run(said.stop);
  EXPECT_EQ(said.started.total_steps, 3 * 7) << "140 of 200 images in batches of 20";
  EXPECT_EQ(said.points["val/top1"].size(), 3u);
  for (const auto& [step, top1] : said.points["val/top1"])
    EXPECT_NEAR(top1 * 60 / 100, std::round(top1 * 60 / 100), 1e-9) << "of 60 images";
  EXPECT_EQ(said.logs.front(), "data: 60 of 200 training images are held out: val/ metrics are of these");
  training::Training(options(), whole).run(whole.stop);
  EXPECT_NE(said.points["val/loss"], whole.points["val/loss"]);
  for (const std::int64_t stop_at : {6, 7}) expect_goes_on_as(said, holding, stop_at);
}

TEST_F(TrainingTest, ADamagedCheckpointCostsTheWorkAndNotTheTrial) {
  Recorder first, second;
  first.stop_at = 5;
  training::Training(options(), first).run(first.stop);
  { std::ofstream{first.newest, std::ios::app} << "x"; }
  auto resumed = options();
  resumed.resume = first.newest, resumed.resume_sha256 = first.newest_sha256;
  EXPECT_THROW((training::Training{resumed, second}), Error) << "unless the work may be lost";
  resumed.restart_if_lost = true;
  EXPECT_TRUE(training::Training(resumed, second).run(second.stop));
  EXPECT_FALSE(second.started.resumed_step);
  ASSERT_EQ(second.logs.size(), 1u);
  EXPECT_NE(second.logs[0].find("restarting from step 0"), std::string::npos) << second.logs[0];
}

TEST_F(TrainingTest, ACheckpointThatLacksATensorCostsTheWorkAndNotTheTrial) {
  Recorder whole, first;
  training::Training(options(), whole).run(whole.stop);
  first.stop_at = 5;
  training::Training(options(), first).run(first.stop);
  for (const char* kind : {"adamw.", "model.", "random."}) {
    auto stored = training::read_checked(first.newest);
    const std::string name = stored.tensors.lower_bound(kind)->first;
    stored.tensors.erase(name);
    auto resumed = options();
    resumed.resume = resumed.run_dir / "other.safetensors";
    models::write_safetensors(resumed.resume, stored);
    Recorder second;
    EXPECT_THROW((training::Training{resumed, second}), Error) << "unless the work may be lost";
    resumed.restart_if_lost = true;
    EXPECT_TRUE(training::Training(resumed, second).run(second.stop));
    ASSERT_EQ(second.logs.size(), 1u);
    EXPECT_NE(second.logs[0].find("has no tensor " + name), std::string::npos) << second.logs[0];
    expect_same_weights(whole, second);  // nothing of it was loaded
  }
}

/// Of a run that goes on at step 5.
void expect_not_bit_exact(const training::TrainingOptions& resumed, const std::string& why) {
  Recorder said;
  training::Training training{resumed, said};
  EXPECT_EQ(said.started.resumed_step, 5);
  EXPECT_FALSE(said.started.bit_exact);
  ASSERT_FALSE(said.logs.empty());
  EXPECT_NE(said.logs[0].find(why), std::string::npos) << said.logs[0];
}

TEST_F(TrainingTest, OtherImagesAreNotSaidToBeTheSame) {
  Recorder first;
  first.stop_at = 5;
  training::Training(options(), first).run(first.stop);
  auto stored = training::read_checked(first.newest);
  auto& facts = stored.metadata.at("ablate");
  facts.replace(facts.find("shapes-"), 7, "others-");
  auto resumed = options();
  resumed.resume = resumed.run_dir / "other.safetensors";
  models::write_safetensors(resumed.resume, stored);
  expect_not_bit_exact(resumed, "the images differ");
}

TEST_F(TrainingTest, ACheckpointThatSaysItHadNoRanksIsDamaged) {
  Recorder first;
  first.stop_at = 5;
  auto stopped = options();
  training::Training(stopped, first).run(first.stop);
  for (const char* ranks : {"\"ranks\":0", "\"ranks\":-3", "\"ranks\":4000000"}) {
    auto stored = training::read_checked(first.newest);
    auto& facts = stored.metadata.at("ablate");
    facts.replace(facts.find("\"ranks\":1"), 9, ranks);
    const auto file = stopped.run_dir / "hostile.safetensors";
    models::write_safetensors(file, stored);
    EXPECT_THROW(training::read_checkpoint(file, {}, stopped.config_hash), Error) << ranks;
  }
}

TEST_F(TrainingTest, ACheckpointOfAnotherTrialIsNotContinued) {
  Recorder first, second;
  first.stop_at = 5;
  training::Training(options(1), first).run(first.stop);
  auto resumed = options(2);
  resumed.resume = first.newest;
  resumed.restart_if_lost = true;
  training::Training training{resumed, second};
  EXPECT_FALSE(second.started.resumed_step);
  ASSERT_FALSE(second.logs.empty());
  EXPECT_NE(second.logs[0].find("belongs to another trial"), std::string::npos) << second.logs[0];
}

TEST_F(TrainingTest, ACheckpointOfBeforeTheChecksumsIsContinued) {
  Recorder whole, first, second;
  training::Training(options(), whole).run(whole.stop);
  first.stop_at = 5;
  training::Training(options(), first).run(first.stop);
  auto resumed = options();
  resumed.resume = resumed.run_dir / "older.safetensors";
  models::write_safetensors(resumed.resume, training::read_checked(first.newest));  // without them
  EXPECT_TRUE(training::Training(resumed, second).run(second.stop));
  EXPECT_EQ(second.started.resumed_step, 5);
  expect_same_weights(whole, second);
}

/// The Error that ends a training.
Error failure_of(const training::TrainingOptions& options, Recorder& said) {
  try {
    training::Training(options, said).run(said.stop);
  } catch (const Error& error) {
    return error;
  }
  return Error{Code::kOk, ""};
}

/// One step, and nothing is finite any more.
void diverge(config::RecipeConfig& recipe) {
  recipe.optimiser = config::Optimiser::kSgd, recipe.lr = 1e38, recipe.schedule = config::Schedule::kConstant,
  recipe.warmup = 0;
  recipe.clip_norm = 0;
  recipe.epochs = 60;  // so that the loss is looked at in every third step
}

TEST_F(TrainingTest, AnEvaluationThatIsNotFiniteEndsTheRun) {
  for (const double ema : {0.0, 0.5}) {
    auto diverging = options();
    diverge(diverging.trial.recipe);
    diverging.trial.recipe.eval_every = 0.1, diverging.trial.recipe.ema = ema;
    Recorder said;
    const auto error = failure_of(diverging, said);
    EXPECT_EQ(error.code(), Code::kAborted) << error.what();
    EXPECT_NE(std::string{error.what()}.find("val/loss is not finite at step 1"), std::string::npos)
        << error.what();
    EXPECT_TRUE(said.points["val/loss"].contains(1)) << "it is said before";
    EXPECT_EQ(said.newest_step, 0) << "and kept nowhere";
  }
}

TEST_F(TrainingTest, ALossThatIsNotFiniteEndsTheRunAtTheNextReportAndNamesItsFirstStep) {
  for (const char* precision : {"fp32", "bf16"}) {
    auto diverging = options();
    diverge(diverging.trial.recipe);
    diverging.trial.recipe.eval_every = 0,
    diverging.trial.recipe.precision = *value_named<config::Precision>(precision);
    Recorder said;
    const auto error = failure_of(diverging, said);
    EXPECT_EQ(error.code(), Code::kAborted);
    EXPECT_STREQ(error.what(), "diverged: the training loss is not finite since step 2") << precision;
    ASSERT_EQ(said.points["train/loss"].size(), 1u) << precision;
    EXPECT_EQ(said.points["train/loss"].begin()->first, 3) << "the report after it";
    EXPECT_EQ(said.newest_step, 0) << "and no checkpoint is kept of it";
  }
}

TEST_F(TrainingTest, AStepThatHalfPrecisionLeavesOutIsNoFailure) {
  auto half = options();
  half.trial.recipe.precision =
      config::Precision::kFloat16;  // its first gradients overflow at the first factor
  Recorder said;
  EXPECT_TRUE(training::Training(half, said).run(said.stop));
}

TEST_F(TrainingTest, CheckpointsThatAreGoodStayWhenNothingIsFiniteAnyMore) {
  Recorder first, second;
  auto run = options();
  run.keep_best = "none", run.checkpoint_every = std::chrono::duration<double>{0};
  run.trial.recipe.epochs = 60, run.trial.recipe.eval_every = 0;
  run.trial.recipe.optimiser = config::Optimiser::kSgd;  // whose state goes on
  first.stop_at = 6;
  training::Training(run, first).run(first.stop);
  diverge(run.trial.recipe);
  run.resume = first.newest;
  const auto error = failure_of(run, second);
  EXPECT_EQ(error.code(), Code::kAborted);
  EXPECT_NE(std::string{error.what()}.find(" is not finite "), std::string::npos) << error.what();
  EXPECT_TRUE(second.points["train/loss"].empty()) << "long before a loss was read";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{run.run_dir}) {
    ++files;
    for (const auto& [name, tensor] : training::read_checkpoint(entry.path(), {}, run.config_hash).tensors)
      EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << entry.path() << ' ' << name;
  }
  EXPECT_EQ(files, 2);
}

TEST_F(TrainingTest, LoweredPrecisionTrainsToo) {
  for (const char* precision : {"bf16", "fp16"}) {
    Recorder said;
    auto lowered = options();
    lowered.trial.recipe.precision = *value_named<config::Precision>(precision);
    EXPECT_TRUE(training::Training(lowered, said).run(said.stop));
    EXPECT_LT(said.points["train/loss"][30], said.points["train/loss"][1]) << precision;
  }
}

TEST_F(TrainingTest, AStoppedRunOfAFullRecipeGoesOnAsIfItHadNeverStopped) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    auto full = options();
    demand_all(full.trial.recipe);
    full.trial.recipe.precision = *value_named<config::Precision>(precision);
    SCOPED_TRACE(precision);
    Recorder whole;
    EXPECT_TRUE(training::Training(full, whole).run(whole.stop));
    EXPECT_EQ(whole.points["val_ema/top1"].size(), 3u);
    expect_goes_on_as(whole, full, 13);
  }
}

TEST_F(TrainingTest, TheNumberOfThreadsThatPrepareImagesChangesNothing) {
  auto full = options();
  demand_all(full.trial.recipe);
  Recorder one, other;
  full.loader_threads = 1;
  training::Training(full, one).run(one.stop);
  full.loader_threads = 3, full.run_dir = new_folder();
  training::Training(full, other).run(other.stop);
  EXPECT_EQ(one.points, other.points);
  expect_same_weights(one, other);
}

TEST_F(TrainingTest, PartsOfABatchAddUpToTheBatch) {
  auto whole = options(), parts = options();
  parts.trial.recipe.accumulate = 4;
  Recorder at_once, in_parts;
  training::Training(whole, at_once).run(at_once.stop);
  training::Training(parts, in_parts).run(in_parts.stop);
  EXPECT_NEAR(at_once.points["train/loss"][3], in_parts.points["train/loss"][3], 1e-4);
}

TEST_F(TrainingTest, EndsWhenItsPatienceDoesAndGoesOnAsIfItHadNeverStopped) {
  auto patient = options();
  auto& recipe = patient.trial.recipe;
  recipe.epochs = 20, recipe.eval_every = 0.2, recipe.lr = 1e-12;  // it learns nothing
  recipe.patience = 3, recipe.patience_metric = "val/top1";
  Recorder said;
  EXPECT_TRUE(training::Training(patient, said).run(said.stop)) << "that is its end";
  EXPECT_EQ(said.started.total_steps, 200);
  EXPECT_EQ(said.newest_step, 8) << "the first evaluation, after 2 steps, and 3 that are no better";
  EXPECT_EQ(said.points["val/top1"].size(), 4u);
  EXPECT_EQ(said.points["train/loss"].size(), 8u);
  EXPECT_NE(said.logs.back().find("ends at step 8 of 200: val/top1 was not better than"), std::string::npos)
      << said.logs.back();
  for (const std::int64_t stop_at : {2, 5, 7}) expect_goes_on_as(said, patient, stop_at);
  Recorder again;
  patient.resume = said.newest, patient.run_dir = new_folder();
  EXPECT_TRUE(training::Training(patient, again).run(again.stop)) << "it is at its end already";
  EXPECT_TRUE(again.points.empty());
}

TEST_F(TrainingTest, PatienceWaitsForWhatIsLowerWhereThatIsBetter) {
  auto patient = options();
  patient.trial.recipe.patience = 1, patient.trial.recipe.patience_metric = "val/loss";
  Recorder said;
  EXPECT_TRUE(training::Training(patient, said).run(said.stop));
  const auto& loss = said.points["val/loss"];
  ASSERT_EQ(loss.size(), 3u) << "every evaluation was better";
  EXPECT_LT(loss.at(30), loss.at(20));
  EXPECT_LT(loss.at(20), loss.at(10));
}

TEST_F(TrainingTest, SaysTheNormOfItsGradientsAndInHalfPrecisionHowManyStepsWereLeftOut) {
  for (const bool is_half : {false, true}) {
    auto run = options();
    if (is_half) run.trial.recipe.precision = config::Precision::kFloat16;
    Recorder said;
    training::Training(run, said).run(said.stop);
    EXPECT_EQ(said.points.contains("train/skipped_steps"), is_half);
    ASSERT_EQ(said.points["train/grad_norm"].size(), 30u);
    for (const auto& [step, norm] : said.points["train/grad_norm"]) EXPECT_GT(norm, 0) << step;
  }
}

TEST_F(TrainingTest, AProfileIsATraceOfFiveStepsAndChangesNothing) {
  Recorder plain, seen;
  training::Training(options(), plain).run(plain.stop);
  auto run = options();
  run.profile = run.run_dir / "trace.json";
  training::Training(run, seen).run(seen.stop);
  EXPECT_EQ(plain.points, seen.points);
  expect_same_weights(plain, seen);
  std::map<std::string, int> calls;
  const auto trace = nlohmann::json::parse(read_file(run.profile));
  for (const auto& event : trace.at("traceEvents"))
    if (event.value("ph", "") == "X") {
      ++calls[event.at("name")];
      EXPECT_GE(event.at("dur").get<double>(), 0);
    }
  EXPECT_EQ(calls["training step"], 5);
  EXPECT_EQ(calls["aten::_fused_adamw_"], 2 * 5) << "of two groups";
  EXPECT_NE(seen.logs.front().find("profile of 5 steps: " + run.profile.string()), std::string::npos);
  run.profile = run.run_dir / "none" / "trace.json";
  EXPECT_THROW((training::Training{run, seen}), Error);
}

TEST_F(TrainingTest, AProfileOfAShortTrainingHasTheStepsThatThereWere) {
  auto run = options();
  run.profile = run.run_dir / "trace.json";
  Recorder said;
  said.stop_at = 5;
  training::Training(run, said).run(said.stop);
  const auto trace = nlohmann::json::parse(read_file(run.profile));
  EXPECT_EQ(
      std::ranges::count_if(trace.at("traceEvents"),
                            [](const auto& event) { return event.value("name", "") == "training step"; }),
      2);
}

TEST_F(TrainingTest, AProfileOfFewerStepsThanAreLeftOutHasThemAll) {
  const auto steps_of = [&](std::int64_t last, std::int64_t stop_at) {
    auto run = options();
    run.profile = run.run_dir / "trace.json", run.last_step = last;
    Recorder said;
    said.stop_at = stop_at, said.stop = stop_at == 0;
    training::Training(run, said).run(said.stop);
    const auto trace =
        nlohmann::json::parse(read_file(run.profile)).value("traceEvents", nlohmann::json::array());
    return std::pair{std::ranges::count_if(
                         trace, [](const auto& event) { return event.value("name", "") == "training step"; }),
                     said.logs.empty() ? std::string{} : said.logs.back()};
  };
  for (const auto& [last, seen] : {std::pair{1, 1}, {3, 3}, {6, 5}}) {
    const auto [steps, said] = steps_of(last, 1000);
    EXPECT_EQ(steps, seen) << last;
    EXPECT_THAT(said, testing::HasSubstr(fmt::format("profile of {} step", seen)));
  }
  EXPECT_THAT(steps_of(30, 0).second, testing::HasSubstr("no profile: the training ended before"));
}

TEST_F(TrainingTest, GradientDescentWithStepsTrains) {
  auto sgd = options();
  auto& recipe = sgd.trial.recipe;
  recipe.optimiser = config::Optimiser::kSgd, recipe.lr = 0.05, recipe.schedule = config::Schedule::kStep,
  recipe.step_epochs = {2};
  Recorder said;
  EXPECT_TRUE(training::Training(sgd, said).run(said.stop));
  EXPECT_LT(said.points["train/loss"][30], said.points["train/loss"][1]);
  EXPECT_NEAR(said.points["lr"][30], 0.005, 1e-9);
}

class WeightsTest : public TrainingTest {
 protected:
  /// A small teacher, trained here.
  std::filesystem::path teacher(const training::TrainingOptions& like) {
    auto options = like;
    options.trial.model = config::read_trial_or_throw(config::Json::parse(R"({
      "model": {"preset": "simple-vit-nano", "patch": 8}, "data": {"name": "shapes"}, "recipe": {"use": "demo"}})"))
                              .model;
    Recorder said;
    training::Training(options, said).run(said.stop);
    models::TensorFile file;
    for (const auto& [name, tensor] : weights(said))
      if (name.starts_with("model.")) file.tensors.emplace(name.substr(6), tensor);
    const auto path = folder_.path() / "teacher.safetensors";
    models::write_safetensors(path, file);
    return path;
  }
};

TEST_F(WeightsTest, AStudentLearnsFromATeacherThatATestTrained) {
  for (const char* kind : {"hard", "soft"}) {
    auto taught = options();
    auto& recipe = taught.trial.recipe;
    recipe.distillation = *value_named<config::Distillation>(kind), recipe.teacher = "simple-vit-nano",
    recipe.teacher_weights = "small";
    Recorder said, alone;
    EXPECT_THROW((training::Training{taught, said}), Error) << "no file is given";
    taught.weights["small"] = teacher(options());
    EXPECT_TRUE(training::Training(taught, said).run(said.stop));
    training::Training(options(), alone).run(alone.stop);
    EXPECT_EQ(said.started.data_fingerprint, alone.started.data_fingerprint) << "the data are the same";
    EXPECT_EQ(said.started.environment.at("weights").at("small"), sha256_file(taught.weights["small"]));
    recipe.teacher_sha256 = std::string(64, '0');
    EXPECT_THROW((training::Training{taught, said}), Error) << "another file of that name";
    EXPECT_NE(said.points["train/loss"], alone.points["train/loss"]);
    EXPECT_LT(said.points["train/loss"][30], said.points["train/loss"][1]);
  }
}

TEST_F(WeightsTest, ADistillationTokenLearnsFromTheTeacher) {
  auto taught = options();
  taught.trial.model = config::read_trial_or_throw(config::Json::parse(R"({
      "model": {"family": "vit", "dim": 16, "depth": 1, "heads": 2, "patch": 8, "distillation_token": true},
      "data": {"name": "shapes"}, "recipe": {"use": "demo"}})"))
                           .model;
  auto& recipe = taught.trial.recipe;
  recipe.distillation = config::Distillation::kHard, recipe.teacher = "simple-vit-nano",
  recipe.teacher_weights = "small";
  taught.weights["small"] = teacher(options());
  Recorder whole;
  EXPECT_TRUE(training::Training(taught, whole).run(whole.stop));
  EXPECT_TRUE(weights(whole).contains("model.head_dist.weight"));
  EXPECT_LT(whole.points["train/loss"][30], whole.points["train/loss"][1]);
  expect_goes_on_as(whole, taught, 13);
}

TEST_F(WeightsTest, NamesThatAPrefixHidesAreSaidToBeHidden) {
  auto fine = options();
  fine.trial.recipe.start_weights = "wrapped";
  Recorder run, said;
  training::Training(options(), run).run(run.stop);
  models::TensorFile all, some;
  for (const auto& [name, tensor] : weights(run))
    if (name.starts_with("model.")) {
      all.tensors.emplace("module." + name.substr(6), tensor);
      some.tensors.emplace("net." + name.substr(6), tensor);
    }
  some.tensors.emplace("loss.weight", torch::ones({3}));
  fine.weights["wrapped"] = folder_.path() / "wrapped.safetensors";
  models::write_safetensors(fine.weights["wrapped"], all);
  training::Training{fine, said};
  EXPECT_NE(said.logs.front().find("names without their prefix module."), std::string::npos)
      << said.logs.front();
  models::write_safetensors(fine.weights["wrapped"], some);
  try {
    training::Training{fine, said};
    FAIL() << "was taken";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("names are the model's behind 'net.': expected them without it"), std::string::npos)
        << what;
  }
}

TEST_F(WeightsTest, AnotherTeacherIsNotSaidToBeTheSame) {
  auto taught = options();
  auto& recipe = taught.trial.recipe;
  recipe.distillation = config::Distillation::kHard, recipe.teacher = "simple-vit-nano",
  recipe.teacher_weights = "small";
  taught.weights["small"] = teacher(options());
  Recorder first;
  first.stop_at = 5;
  training::Training(taught, first).run(first.stop);
  const auto other = folder_.path() / "other.safetensors";
  auto content = models::read_safetensors(taught.weights["small"]);
  content.tensors.begin()->second.zero_();
  models::write_safetensors(other, content);
  taught.weights["small"] = other, taught.resume = first.newest, taught.run_dir = new_folder();
  expect_not_bit_exact(taught, "the weights small differ");
}

TEST_F(WeightsTest, FineTuningStartsFromWeightsOfAnotherHeadAndSize) {
  auto first = options();
  Recorder trained, said;
  training::Training(first, trained).run(trained.stop);
  models::TensorFile file;
  for (const auto& [name, tensor] : weights(trained))
    if (name.starts_with("model.")) file.tensors.emplace(name.substr(6), tensor);
  const auto path = folder_.path() / "start.safetensors";
  models::write_safetensors(path, file);
  auto tuned = options();
  tuned.trial.recipe.start_weights = "before", tuned.weights["before"] = path, tuned.trial.recipe.lr = 1e-6;
  EXPECT_TRUE(training::Training(tuned, said).run(said.stop));
  EXPECT_LT(said.points["train/loss"][1], trained.points["train/loss"][1])
      << "it starts with what was learned";
  EXPECT_NE(said.logs.at(0).find("starts from the weights before"), std::string::npos);
}

TEST_F(TrainingTest, CheckpointsOfAProcessBeforeCountToo) {
  Recorder first, second;
  auto often = options();
  often.checkpoint_every = std::chrono::duration<double>{0};
  often.keep_best = "none";
  first.stop_at = 9;
  training::Training(often, first).run(first.stop);
  often.resume = first.newest;
  training::Training(often, second).run(second.stop);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{often.run_dir})
    files += entry.path().extension() == ".safetensors";
  EXPECT_EQ(files, 2);
}

TEST_F(TrainingTest, KeepsTheTwoNewestCheckpointsAloneWhereNobodyWantsTheBest) {
  Recorder said;
  auto often = options();
  often.checkpoint_every = std::chrono::duration<double>{0};
  often.keep_best = "none";
  training::Training(often, said).run(said.stop);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{often.run_dir})
    files += entry.path().extension() == ".safetensors";
  EXPECT_EQ(files, 2);
}

}  // namespace
}  // namespace abl::trainer
