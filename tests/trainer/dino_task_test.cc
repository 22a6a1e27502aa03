// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/dino/self_distillation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "models/counting/counter.h"
#include "models/counting/memory.h"
#include "models/weights/state.h"
#include "tests/ranks/threads_as_ranks.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/training/learner.h"

namespace abl::trainer {
namespace {

config::TrialConfig dino_trial(const char* family, const config::Json& recipe = config::Json::object()) {
  config::Json own{{"use", "demo"}, {"epochs", 4}, {"batch", 16}, {"eval_every", 2}, {"drop_path", 0.1}};
  own.update(recipe);
  return config::read_trial_or_throw(
      {{"model", {{"family", family}, {"dim", 32}, {"depth", 2}, {"heads", 2}, {"patch", 8}}},
       {"data", {{"name", "shapes"}, {"train_images", 64}, {"val_images", 40}}},
       {"task",
        {{"kind", "dino"},
         {"prototypes", 64},
         {"width", 64},
         {"bottleneck", 16},
         {"local_views", 2},
         {"local_size", 16},
         {"teacher_momentum", 0.9}}},
       {"recipe", own},
       {"seed", 5}});
}

tasks::DinoOptions small_dino() {
  tasks::DinoOptions options{.head = {.prototypes = 64, .hidden = 64, .bottleneck = 16}};
  options.views.global_size = 32, options.views.local_size = 16, options.views.locals = 2;
  options.teacher_momentum = 0.9;
  return options;
}

/// Takes the steps from `first` on, until `last`.
double take_steps(tasks::SelfDistillation& task, training::Learner& learner, std::int64_t first,
                  std::int64_t last, std::int64_t in_all, double lr, std::int64_t steps_of_an_epoch = 4) {
  task.load({.first = first, .last = last, .of_an_epoch = steps_of_an_epoch, .in_all = in_all});
  double loss = 0;
  for (auto step = first; task.next(); ++step) {
    learner.loss_sum().zero_();
    const auto work = task.work(learner.model(), step, false);
    learner.step(work, lr);
    loss = learner.loss_sum().item<double>() / static_cast<double>(work.images);
  }
  return loss;
}

std::map<std::string, double> judged(tasks::Task& task, torch::nn::Module& model) {
  const std::atomic<bool> never = false;
  return task.evaluate(model, "val", never, {}).value();
}

TEST(DinoSchedules, GoFromStartToEnd) {
  const tasks::DinoOptions options{.teacher_temperature = 0.07, .teacher_temperature_epochs = 4};
  EXPECT_DOUBLE_EQ(tasks::teacher_temperature(options, 0), 0.04);
  EXPECT_DOUBLE_EQ(tasks::teacher_temperature(options, 1), 0.05);
  EXPECT_DOUBLE_EQ(tasks::teacher_temperature(options, 3), 0.07);
  EXPECT_DOUBLE_EQ(tasks::teacher_temperature(options, 9), 0.07);
  EXPECT_DOUBLE_EQ(tasks::teacher_momentum(options, 0, 100), 0.996);
  EXPECT_DOUBLE_EQ(tasks::teacher_momentum(options, 50, 100), 0.998);
  EXPECT_DOUBLE_EQ(tasks::teacher_momentum(options, 100, 100), 1);
}

/// Views that are nearly the image: what a few steps can learn is to tell images apart.
tasks::DinoOptions easy_dino() {
  auto options = small_dino();
  options.head = {.prototypes = 64, .hidden = 128, .bottleneck = 64};
  options.views.global.area_low = 0.8;
  options.views.jitter_probability = options.views.grayscale = options.views.solarise = 0;
  options.views.first_blur = options.views.second_blur = options.views.local_blur = 0;
  options.teacher_momentum = 0.97;
  return options;
}

TEST(DinoTask, LearnsWithoutLabelsToTellImagesApart) {
  struct Case {
    const char* family;
    std::int64_t steps;
    double loss, spread;  ///< of those before, at most and at least
  };
  for (const auto& [family, steps, less, more] : {Case{"vit", 80, 0.95, 2}, {"xcit", 40, 0.95, 3}}) {
    const auto trial = dino_trial(family, {{"batch", 32}, {"epochs", 50}, {"drop_path", 0}});
    tasks::SelfDistillation task{trial, easy_dino(), {.loader_threads = 2}};
    torch::manual_seed(1);
    training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
    const auto before = judged(task, learner.model());
    const double first = take_steps(task, learner, 0, 20, 10'000, 1e-3, 2);
    const double last = take_steps(task, learner, 20, steps, 10'000, 1e-3, 2);
    const auto after = judged(task, learner.model());
    EXPECT_LT(last, less * first) << family;
    EXPECT_GT(after.at("val/feature_std"), more * before.at("val/feature_std")) << family;
    EXPECT_EQ(after.size(), 3u);
    for (const char* votes : {"val/knn10", "val/knn20"})
      EXPECT_NEAR(after.at(votes) * 0.4, std::round(after.at(votes) * 0.4), 1e-9) << "of 40 images";
  }
}

TEST(DinoTask, BatchesDependOnSeedAndStepAlone) {
  const auto trial = dino_trial("vit");
  std::vector<torch::Tensor> losses;
  for (const auto& [threads, from] : {std::pair{1, 0}, {3, 0}, {2, 5}}) {
    tasks::SelfDistillation task{trial, small_dino(), {.loader_threads = threads}};
    torch::manual_seed(1);
    auto model = task.new_model();
    model->eval();
    task.load({.first = from, .last = 6, .of_an_epoch = 4, .in_all = 8});
    torch::Tensor loss;
    for (std::int64_t step = from; task.next(); ++step)
      loss = task.work(*model, step, false).loss({}, 0, 16).mean;
    losses.push_back(loss);
  }
  EXPECT_TRUE(losses[0].equal(losses[1]));
  EXPECT_TRUE(losses[0].equal(losses[2])) << "also where a run goes on";
}

TEST(DinoTask, TheLastLayerStaysToTheBitWhileItIsFrozen) {
  auto options = small_dino();
  options.head.has_fixed_norm = false, options.frozen_epochs = 2;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    const auto trial = dino_trial("vit", {{"precision", precision}, {"weight_decay", 0.3}, {"clip_norm", 1}});
    tasks::SelfDistillation task{trial, options, {}};
    training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
    const auto state = learner.state();
    const std::string last = "student.head.last_layer.weight_", other = "model.student.head.mlp.4.weight";
    const auto v = state.at("model." + last + "v").clone(), g = state.at("model." + last + "g").clone(),
               w = state.at(other).clone();
    take_steps(task, learner, 0, 8, 16, 1e-2);
    EXPECT_TRUE(learner.state().at("model." + last + "v").equal(v)) << precision;
    EXPECT_TRUE(learner.state().at("model." + last + "g").equal(g)) << precision;
    EXPECT_EQ(learner.state().at("adamw.step." + last + "v").item<float>(), 0) << "nor does it decay";
    EXPECT_FALSE(learner.state().at(other).equal(w)) << precision;
    take_steps(task, learner, 8, 12, 16, 1e-2);
    EXPECT_FALSE(learner.state().at("model." + last + "v").equal(v)) << precision;
    EXPECT_FALSE(learner.state().at("model." + last + "g").equal(g)) << precision;
  }
}

TEST(DinoTask, TheTeacherHasNoStateOfTheOptimiser) {
  const auto trial = dino_trial("vit");
  tasks::SelfDistillation task{trial, small_dino(), {}};
  training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
  int of_the_teacher = 0;
  for (const auto& [name, tensor] : learner.state()) {
    EXPECT_FALSE(name.starts_with("adamw") && name.find("teacher.") != name.npos) << name;
    of_the_teacher += name.starts_with("model.teacher.");
  }
  EXPECT_GT(of_the_teacher, 20);
  EXPECT_TRUE(learner.state().contains("model.centre.mean"));
}

/// Without what depends on how images are grouped, or makes much of the last bits.
config::TrialConfig plain_trial(const config::Json& recipe = config::Json::object()) {
  config::Json own{{"drop_path", 0},       {"optimiser", "sgd"}, {"momentum", 0.5},
                   {"weight_decay", 0.01}, {"clip_norm", 0.5},   {"clip_rule", "each-tensor"}};
  own.update(recipe);
  return dino_trial("vit", own);
}

void expect_close(const std::map<std::string, torch::Tensor>& found,
                  const std::map<std::string, torch::Tensor>& expected, double tolerance) {
  for (const auto& [name, tensor] : expected)
    if (tensor.is_floating_point()) {
      EXPECT_LT((found.at(name) - tensor).abs().max().item<double>(), tolerance) << name;
    }
}

TEST(DinoTask, PartsOfABatchAddUpToTheBatch) {
  std::vector<std::map<std::string, torch::Tensor>> states;
  for (const int parts : {1, 4}) {
    const auto trial = plain_trial({{"accumulate", parts}});
    tasks::SelfDistillation task{trial, small_dino(), {}};
    torch::manual_seed(1);
    training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
    task.load({.first = 0, .last = 5, .of_an_epoch = 4, .in_all = 8});
    const ranks::RankGroup alone;
    const auto share = tasks::share_of(trial.recipe, task.data(), alone);
    EXPECT_EQ(static_cast<int>(share.parts.size()), parts);
    for (std::int64_t step = 0; task.next(); ++step)
      learner.step(task.work(learner.model(), step, false), 0.1, share.parts);
    states.push_back(learner.state());
  }
  expect_close(states[1], states[0], 2e-5);
  EXPECT_GT(states[0].at("model.centre.mean").abs().max().item<double>(), 1e-3) << "it has moved";
}

TEST(DinoTask, AStepThatOverflowsLeavesTheStudentAndSpoilsNothing) {
  const auto trial = dino_trial("xcit", {{"precision", "fp16"}, {"accumulate", 2}});
  tasks::SelfDistillation task{trial, small_dino(), {}};
  torch::manual_seed(1);
  training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
  learner.state().at("scaler.scale").fill_(1e30);
  const auto weight = [&](const char* name) { return learner.state().at(name).detach().clone(); };
  const char* const of_student = "model.student.head.mlp.0.weight";
  const auto before = weight(of_student);
  take_steps(task, learner, 0, 1, 8, 1e-2);
  EXPECT_TRUE(weight(of_student).equal(before));
  EXPECT_LT(learner.state().at("scaler.scale").item<float>(), 1e30F);
  learner.state().at("scaler.scale").fill_(64);
  take_steps(task, learner, 1, 4, 8, 1e-2);
  EXPECT_FALSE(weight(of_student).equal(before));
  for (const auto& [name, tensor] : learner.state())
    EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
}

TEST(DinoTask, WhatStudentAndTeacherSayIn16BitsIsNearlyWhatTheySayIn32) {
  std::map<std::string, double> losses;
  std::map<std::string, torch::Tensor> centres;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    const auto trial = dino_trial("vit", {{"precision", precision}, {"drop_path", 0}});
    tasks::SelfDistillation task{trial, small_dino(), {}};
    torch::manual_seed(1);
    training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
    losses[precision] = take_steps(task, learner, 0, 1, 8, 1e-3);
    centres[precision] = learner.state().at("model.centre.mean").detach().clone();
  }
  EXPECT_GT(losses["fp32"], 1);
  for (const auto& [precision, tolerance] : {std::pair{"bf16", 0.03}, {"fp16", 0.01}}) {
    EXPECT_NEAR(losses[precision], losses["fp32"], tolerance * losses["fp32"]) << precision;
    EXPECT_LT((centres[precision] - centres["fp32"]).norm().item<double>(),
              tolerance * centres["fp32"].norm().item<double>())
        << precision;
  }
}

TEST(DinoTask, TwoRanksLearnWhatOneDoes) {
  const auto trial = plain_trial();
  const auto train = [&](std::shared_ptr<ranks::RankGroup> ranks,
                         const std::map<std::string, torch::Tensor>& start,
                         std::map<std::string, double>& values) {
    tasks::SelfDistillation task{trial, small_dino(), {.ranks = ranks}};
    const auto model = task.new_model();
    models::load_state(*model, start);
    training::Learner learner{model, nullptr, trial.recipe, torch::kCPU, ranks};
    task.load({.first = 0, .last = 6, .of_an_epoch = 4, .in_all = 8});
    const auto share = tasks::share_of(trial.recipe, task.data(), *ranks);
    for (std::int64_t step = 0; task.next(); ++step)
      learner.step(task.work(learner.model(), step, false), 0.1, share.parts);
    values = judged(task, learner.model());
    std::map<std::string, torch::Tensor> state;
    for (const auto& [name, tensor] : learner.state()) state.emplace(name, tensor.detach().clone());
    return state;
  };
  torch::manual_seed(1);
  const auto alone = std::make_shared<ranks::RankGroup>();
  std::map<std::string, torch::Tensor> start;
  {
    tasks::SelfDistillation task{trial, small_dino(), {}};
    for (const auto& [name, tensor] : models::state_of(*task.new_model()))
      start.emplace(name, tensor.clone());
  }
  std::map<std::string, double> of_one;
  const auto one = train(alone, start, of_one);
  std::array<std::map<std::string, torch::Tensor>, 2> two;
  std::array<std::map<std::string, double>, 2> of_two;
  ranks::as_ranks(2, [&](ranks::RankGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    two[rank] = train({std::shared_ptr<void>{}, &group}, start, of_two[rank]);
  });
  for (const auto& [name, tensor] : two[0]) EXPECT_TRUE(tensor.equal(two[1].at(name))) << name;
  expect_close(two[0], one, 5e-5);
  EXPECT_FALSE(one.at("model.teacher.head.mlp.0.weight").equal(start.at("teacher.head.mlp.0.weight")));
  EXPECT_EQ(of_two[0], of_two[1]);
  for (const auto& [name, value] : of_one)  // of 40 images one
    EXPECT_NEAR(of_two[0].at(name), value, name.ends_with("feature_std") ? 1e-3 : 2.6) << name;
}

TEST(DinoTask, FeaturesThatAreAllTheSameAreSaidToBe) {
  const auto trial = dino_trial("vit");
  tasks::SelfDistillation task{trial, small_dino(), {}};
  auto model = task.new_model();
  EXPECT_GT(judged(task, *model).at("val/feature_std"), 0.1);
  const torch::NoGradGuard no_grad;
  auto norm = models::state_of(*model).at("teacher.backbone.norm.weight");
  norm.zero_();
  models::state_of(*model).at("teacher.backbone.norm.bias").fill_(1);
  EXPECT_EQ(task.warning(), "") << "features of the first evaluation may be those of an untrained network";
  const auto collapsed = judged(task, *model);
  EXPECT_THAT(task.warning(), testing::StartsWith("features have collapsed"));
  EXPECT_LT(collapsed.at("val/feature_std"), 1e-3);
  EXPECT_GE(collapsed.at("val/knn20"), 0);
  norm.fill_(NAN);
  EXPECT_TRUE(std::isnan(judged(task, *model).at("val/knn10"))) << "and not 0 percent";
}

TEST(DinoTask, AStopEndsAnEvaluation) {
  const auto trial = dino_trial("vit");
  tasks::SelfDistillation task{trial, small_dino(), {}};
  const auto model = task.new_model();
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(task.evaluate(*model, "val", stop, {}));
}

TEST(DinoTask, HalfOfABatchIsForMeasurements) {
  const auto trial = dino_trial("vit");
  tasks::SelfDistillation task{trial, small_dino(), {}};
  training::Learner learner{task.new_model(), nullptr, trial.recipe, torch::kCPU};
  task.load({.first = 0, .last = 1, .of_an_epoch = 4, .in_all = 4});
  ASSERT_TRUE(task.next());
  const auto half = task.work(learner.model(), 0, true);
  EXPECT_EQ(half.images, 8);
  learner.step(half, 1e-3);
  EXPECT_TRUE(std::isfinite(learner.loss_sum().item<double>()));
}

TEST(DinoTask, ItsOptionsAreThoseOfTheTrial) {
  auto trial = dino_trial("vit", {{"flip", 0.25}});
  trial.task.global_area = {0.3, 0.9}, trial.task.local_area = {0.1, 0.2}, trial.task.frozen_epochs = 3,
  trial.task.fixed_norm = false;
  trial.task.teacher_temperature = 0.07, trial.task.teacher_temperature_epochs = 5, trial.task.bank = 30;
  trial.task.student_temperature = 0.2, trial.task.centre_momentum = 0.8, trial.task.blur = 0.05;
  const auto options = tasks::dino_options(trial);
  EXPECT_EQ(options.head.prototypes, 64);
  EXPECT_EQ(options.head.hidden, 64);
  EXPECT_EQ(options.head.bottleneck, 16);
  EXPECT_FALSE(options.head.has_fixed_norm);
  EXPECT_EQ(options.views.global_size, 32);
  EXPECT_EQ(options.views.local_size, 16);
  EXPECT_EQ(options.views.locals, 2);
  EXPECT_EQ(options.views.global.area_low, 0.3);
  EXPECT_EQ(options.views.global.area_high, 0.9);
  EXPECT_EQ(options.views.local.area_low, 0.1);
  EXPECT_EQ(options.views.local.area_high, 0.2);
  EXPECT_EQ(options.views.flip, 0.25);
  EXPECT_EQ(options.views.blur_low, 0.05);
  EXPECT_EQ(options.views.blur_high, 0.05);
  EXPECT_EQ(options.student_temperature, 0.2);
  EXPECT_EQ(options.teacher_temperature, 0.07);
  EXPECT_EQ(options.teacher_temperature_start, 0.04);
  EXPECT_EQ(options.teacher_temperature_epochs, 5);
  EXPECT_EQ(options.centre_momentum, 0.8);
  EXPECT_EQ(options.teacher_momentum, 0.9);
  EXPECT_EQ(options.frozen_epochs, 3);
  EXPECT_EQ(options.bank.images, 30);
}

TEST(DinoTask, ByDefaultItIsTheReleases) {
  const auto released = config::read_trial_or_throw({{"model", {{"preset", "vit_small_patch16_224"}}},
                                                     {"data", {{"name", "imagenet-1k"}}},
                                                     {"task", {{"kind", "dino"}}},
                                                     {"recipe", {{"use", "xcit-dino"}}}});
  const auto options = tasks::dino_options(released);
  const tasks::DinoOptions release;
  EXPECT_EQ(options.head.prototypes, release.head.prototypes);
  EXPECT_EQ(options.head.hidden, release.head.hidden);
  EXPECT_EQ(options.head.bottleneck, release.head.bottleneck);
  EXPECT_EQ(options.head.has_fixed_norm, release.head.has_fixed_norm);
  EXPECT_EQ(options.views.local_size, release.views.local_size);
  EXPECT_EQ(options.views.locals, release.views.locals);
  EXPECT_EQ(options.views.global.area_low, release.views.global.area_low);
  EXPECT_EQ(options.views.local.area_high, release.views.local.area_high);
  EXPECT_EQ(options.views.blur_low, release.views.blur_low);
  EXPECT_EQ(options.views.blur_high, release.views.blur_high);
  EXPECT_EQ(options.student_temperature, release.student_temperature);
  EXPECT_EQ(options.teacher_temperature, release.teacher_temperature);
  EXPECT_EQ(options.centre_momentum, release.centre_momentum);
  EXPECT_EQ(options.teacher_momentum, release.teacher_momentum);
  EXPECT_EQ(options.frozen_epochs, release.frozen_epochs);
  EXPECT_EQ(options.bank.images, release.bank.images);
}

TEST(DinoTask, MemoryIsPredictedInEveryPrecision) {
  for (const char* family : {"vit", "xcit"})
    for (const auto precision :
         {models::Precision::kFloat, models::Precision::kBFloat16, models::Precision::kAutocast}) {
      const auto step = models::predict_step_memory(tasks::dino_network(dino_trial(family)),
                                                    {.batch = 4, .image_size = 32, .precision = precision});
      EXPECT_GT(step.peak, step.parameters + step.optimiser) << family;
      EXPECT_LT(step.gradients, step.parameters * 6 / 10) << "the teacher has none";
    }
}

TEST(DinoTask, AStepIsCountedWithAllItsViews) {
  const auto trial = dino_trial("vit");
  const auto network = tasks::dino_network(trial);
  const auto answer = models::count_parts(network, 32).front();
  const auto step = models::count_step(network, 32);
  const std::int64_t head = 32 * 64 + 64 * 64 + 64 * 16 + 16 * 64;  // multiply-adds of a view
  const auto classifier = models::classifier([&](torch::Device device) {
    return models::build(tasks::model_options(trial.model, trial.data), device);
  });
  EXPECT_EQ(models::count_step(classifier, 32), 3 * models::count_parts(classifier, 32).front().work.macs);
  // two views of the teacher once, of the student three times; two small ones cost less than a large one
  EXPECT_GT(step, 8 * (answer.work.macs + head));
  EXPECT_LT(step, 11 * (answer.work.macs + head));
}

class DinoTraining : public SmallTraining {
 protected:
  training::TrainingOptions dino(const char* family, const config::Json& recipe) {
    training::TrainingOptions options;
    options.trial = dino_trial(family, recipe);
    options.config_hash = config::config_hash(config::canonical_text(options.trial));
    options.run_dir = new_folder();
    return options;
  }
};

TEST_F(DinoTraining, AStoppedRunGoesOnAsIfItHadNeverStopped) {
  for (const auto& [family, precision] : {std::pair{"vit", "fp32"}, {"xcit", "bf16"}}) {
    SCOPED_TRACE(family);
    const config::Json recipe{{"precision", precision},  {"accumulate", 2}, {"weight_decay", 0.04},
                              {"weight_decay_end", 0.4}, {"clip_norm", 3},  {"clip_rule", "each-tensor"}};
    Recorder whole;
    EXPECT_TRUE(training::Training(dino(family, recipe), whole).run(whole.stop));
    EXPECT_EQ(whole.started.total_steps, 16);
    EXPECT_EQ(whole.points["val/knn20"].size(), 2u);
    EXPECT_EQ(whole.points["train/loss"].size(), 16u);
    EXPECT_FALSE(whole.points.contains("val/top1"));
    for (const std::int64_t stop_at : {3, 8}) expect_goes_on_as(whole, dino(family, recipe), stop_at);
  }
}

}  // namespace
}  // namespace abl::trainer
