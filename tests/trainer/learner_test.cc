// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "worker/trainer/training/learner.h"

#include <gtest/gtest.h>

#include "config/document/trial_document.h"
#include "models/backbones/model_options.h"
#include "worker/trainer/tasks/classify/loss.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::trainer {
namespace {

/// A small XCiT: it has batch normalisation, layer scale and a learned temperature.
class LearnerTest : public testing::Test {
 protected:
  LearnerTest() {
    torch::manual_seed(3);
    images_ = torch::randn({8, 3, 32, 32});
    targets_ = {.labels = torch::arange(8) % 4, .other_labels = {}, .shares = {}, .teacher = {}};
  }

  std::shared_ptr<models::Classifier> build() const {
    return models::build(tasks::model_options(trial_.model, trial_.data));
  }
  training::Learner learner(const char* precision, std::unique_ptr<training::StepGraph> graph = nullptr) {
    trial_.recipe.precision = *value_named<config::Precision>(precision);
    torch::manual_seed(7);
    return training::Learner{
        build(), nullptr, trial_.recipe, torch::kCPU, std::make_shared<ranks::RankGroup>(), std::move(graph)};
  }

  void step(training::Learner& learner, const torch::Tensor& images, const tasks::Targets& targets,
            double lr) const {
    auto& model = dynamic_cast<models::Classifier&>(learner.model());
    learner.step(tasks::work_of(model, images, targets, trial_.recipe), lr);
  }

  config::TrialConfig trial_ = config::read_trial_or_throw(
      {{"model", {{"family", "xcit"}, {"dim", 32}, {"depth", 1}, {"heads", 4}, {"patch", 8}}},
       {"data", {{"name", "pictures"}, {"image_size", 32}, {"classes", 4}}},
       {"recipe", {{"use", "demo"}}},
       {"seed", 0}});
  torch::Tensor images_;
  tasks::Targets targets_;
};

TEST_F(LearnerTest, InBFloat16TheModelHasTheWeightsRoundedAndTheOptimiserExactly) {
  auto learner = this->learner("bf16");
  for (int taken = 0; taken < 3; ++taken) step(learner, images_, targets_, 1e-3);
  const auto state = learner.state();
  int lowered = 0;
  for (const auto& parameter : learner.model().named_parameters()) {
    const auto& exact = state.at("model." + parameter.key());
    EXPECT_EQ(exact.scalar_type(), torch::kFloat) << parameter.key();
    EXPECT_TRUE(torch::equal(parameter.value(), exact.to(parameter.value().scalar_type())))
        << parameter.key();
    lowered += parameter.value().scalar_type() == torch::kBFloat16;
    EXPECT_EQ(state.at("adamw.first." + parameter.key()).scalar_type(), torch::kFloat);
  }
  EXPECT_GT(lowered, 20);
  for (const auto& [name, tensor] : state)
    if (name.ends_with("running_mean")) {
      EXPECT_EQ(tensor.scalar_type(), torch::kFloat) << name;
    }
}

TEST_F(LearnerTest, InBFloat16StepsThatRoundToNothingAddUp) {
  auto learner = this->learner("bf16");
  const auto weight = [&] { return learner.state().at("model.head.weight").clone(); };
  const auto before = weight();
  step(learner, images_, targets_, 1e-7);
  const auto moved = (weight() - before).abs();
  EXPECT_GT(moved.max().item<double>(), 0);
  EXPECT_LT(moved.max().item<double>(), 1e-6) << "less than a bfloat16 of this size can hold";
}

TEST_F(LearnerTest, InBFloat16LearnsWhatItLearnsInFloat32) {
  auto exact = learner("fp32"), lowered = learner("bf16");
  for (int taken = 0; taken < 20; ++taken)
    for (auto* const each : {&exact, &lowered}) {
      each->loss_sum().zero_();
      step(*each, images_, targets_, 1e-3);
    }
  const double loss = exact.loss_sum().item<double>() / 8;
  EXPECT_LT(loss, 1.0);
  EXPECT_NEAR(lowered.loss_sum().item<double>() / 8, loss, 0.1);
}

TEST_F(LearnerTest, AddsUpTheNormOfItsGradientsBeforeTheyAreClipped) {
  trial_.recipe.optimiser = config::Optimiser::kSgd, trial_.recipe.momentum = 0,
  trial_.recipe.weight_decay = 0;
  for (const double bound : {0.0, 1e-3}) {
    trial_.recipe.clip_norm = bound;
    auto learner = this->learner("fp32");
    const auto before = learner.state().at("model.head.weight").clone();
    step(learner, images_, targets_, 1.0);
    const auto after_one = learner.gradients_sum().clone();
    EXPECT_EQ(after_one[1].item<double>(), 1);
    EXPECT_EQ(after_one[2].item<double>(), 0);
    const double norm = after_one[0].item<double>();
    const double moved = (learner.state().at("model.head.weight") - before).norm().item<double>();
    EXPECT_GT(norm, 0.01);
    if (bound > 0)
      EXPECT_LE(moved, bound * 1.001) << "it is the gradient that is clipped, not what is said of it";
    else
      EXPECT_LT(moved, norm) << "a part of all";
    step(learner, images_, targets_, 0);
    EXPECT_EQ(learner.gradients_sum()[1].item<double>(), 2);
    EXPECT_GT(learner.gradients_sum()[0].item<double>(), norm);
  }
}

TEST_F(LearnerTest, ClipsEachParametersGradientByItsOwnNormWhereTheRecipeSaysSo) {
  trial_.recipe.optimiser = config::Optimiser::kSgd, trial_.recipe.momentum = 0,
  trial_.recipe.weight_decay = 0;
  trial_.recipe.clip_norm = 1e-3, trial_.recipe.clip_rule = config::ClipRule::kEachTensor;
  for (const char* precision : {"fp32", "bf16"}) {
    auto learner = this->learner(precision);
    std::map<std::string, torch::Tensor> before;
    for (const auto& [name, tensor] : learner.state()) before.emplace(name, tensor.clone());
    step(learner, images_, targets_, 1.0);
    int at_the_bound = 0;
    for (const auto& parameter : learner.model().named_parameters()) {
      const auto name = "model." + parameter.key();
      const double moved = (learner.state().at(name) - before.at(name)).norm().item<double>();
      EXPECT_LE(moved, 1.001e-3) << name;
      at_the_bound += moved > 0.99e-3;
    }
    EXPECT_GT(at_the_bound, 10) << precision << " and not all of them together";
    EXPECT_GT(learner.gradients_sum()[0].item<double>(), 0.01) << "what is said of it is the norm of all";
  }
}

TEST_F(LearnerTest, DecaysByWhatItIsToldInEveryPrecision) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    trial_.recipe.weight_decay = 0;
    auto plain = learner(precision), decaying = learner(precision);
    decaying.decay_by(0.5);
    const auto before = plain.state().at("model.head.weight").clone();
    for (auto* const each : {&plain, &decaying}) step(*each, images_, targets_, 1e-2);
    const auto difference = plain.state().at("model.head.weight") - decaying.state().at("model.head.weight");
    EXPECT_TRUE(difference.allclose(before * (0.5 * 1e-2), 1e-3, 1e-7)) << precision;
  }
}

TEST_F(LearnerTest, WhatAStepFreezesStaysAndWhatComesAfterItSeesItsWeights) {
  for (const char* precision : {"fp32", "bf16"}) {
    auto learner = this->learner(precision);
    const auto before = learner.state().at("model.head.weight").clone();
    auto work =
        tasks::work_of(dynamic_cast<models::Classifier&>(learner.model()), images_, targets_, trial_.recipe);
    work.frozen = {"head.weight"};
    int seen = 0;
    work.after = [&](const std::map<std::string, torch::Tensor>& weights) {
      ++seen;
      EXPECT_EQ(weights.at("head.bias").scalar_type(), torch::kFloat);
      EXPECT_NE(weights.at("head.bias").abs().max().item<double>(), 0) << "after it has moved";
    };
    learner.step(work, 1e-2);
    EXPECT_EQ(seen, 1);
    EXPECT_TRUE(learner.state().at("model.head.weight").equal(before)) << precision;
    EXPECT_EQ(learner.state().at("adamw.step.head.weight").item<float>(), 0);
  }
}

TEST_F(LearnerTest, CountsTheStepsThatHalfPrecisionLeavesOut) {
  auto learner = this->learner("fp16");
  const auto before = learner.state().at("model.head.weight").clone();
  learner.state().at("scaler.scale").fill_(1e30);  // gradients of half precision overflow
  for (int taken = 0; taken < 2; ++taken) step(learner, images_, targets_, 1e-3);
  EXPECT_TRUE(learner.state().at("model.head.weight").equal(before));
  EXPECT_TRUE(learner.gradients_sum().equal(torch::tensor({0.0, 0.0, 2.0}, torch::kFloat64)));
  learner.state().at("scaler.scale").fill_(1);
  step(learner, images_, targets_, 1e-3);
  EXPECT_FALSE(learner.state().at("model.head.weight").equal(before));
  EXPECT_EQ(learner.gradients_sum()[1].item<double>(), 1);
  EXPECT_GT(learner.gradients_sum()[0].item<double>(), 0);
}

/// How far the gradient of a step is from that in float32, relative to it, where the images come in so many
/// parts.
double error_of_gradient(const std::string& precision, std::int64_t parts) {
  constexpr std::int64_t kImages = 128;
  auto trial = config::read_trial_or_throw(
      {{"model", {{"family", "simple-vit"}, {"dim", 32}, {"depth", 2}, {"heads", 2}, {"patch", 8}}},
       {"data", {{"name", "pictures"}, {"image_size", 32}, {"classes", 4}}},
       {"recipe",
        {{"use", "demo"}, {"optimiser", "sgd"}, {"momentum", 0}, {"weight_decay", 0}, {"clip_norm", 0}}},
       {"seed", 0}});
  torch::manual_seed(5);
  const auto images = torch::randn({kImages, 3, 32, 32});
  const tasks::Targets targets{
      .labels = torch::arange(kImages) % 4, .other_labels = {}, .shares = {}, .teacher = {}};
  const auto gradient = [&](const std::string& type, std::int64_t count) {
    trial.recipe.precision = *value_named<config::Precision>(type);
    torch::manual_seed(7);
    training::Learner learner{models::build(tasks::model_options(trial.model, trial.data)), nullptr,
                              trial.recipe, torch::kCPU};
    const auto before = learner.state();
    std::map<std::string, torch::Tensor> weights;
    for (const auto& [name, tensor] : before)
      if (name.starts_with("model.")) weights[name] = tensor.clone();
    std::vector<ranks::BatchShare::Part> cut;
    for (std::int64_t first = 0; first < kImages; first += kImages / count)
      cut.push_back({.first = first, .size = kImages / count, .weight = 1.0 / static_cast<double>(count)});
    auto& model = dynamic_cast<models::Classifier&>(learner.model());
    learner.step(tasks::work_of(model, images, targets, trial.recipe), 1.0, cut);
    std::vector<torch::Tensor> moved;
    for (const auto& [name, tensor] : weights)
      moved.push_back((tensor - learner.state().at(name)).to(torch::kDouble).flatten());
    return torch::cat(moved);
  };
  const auto exact = gradient("fp32", 1);
  return ((gradient(precision, parts) - exact).norm() / exact.norm()).item<double>();
}

TEST(LearnerPartsTest, TheErrorOfAGradientDoesNotGrowWithTheNumberOfItsParts) {
  EXPECT_LT(error_of_gradient("fp32", 128), 1e-5);
  const double whole = error_of_gradient("bf16", 1);
  EXPECT_GT(whole, 1e-3) << "what rounding the activations costs";
  for (const std::int64_t parts : {2, 16, 128})
    EXPECT_LT(error_of_gradient("bf16", parts), 1.1 * whole) << parts << " parts";
}

/// What a recorded step is: the first one's work, on the same tensors again and again.
class Recorded final : public training::StepGraph {
 public:
  void run(const Inputs& inputs, const Step& step) override {
    if (!step_) {
      step_ = step;
      for (const auto& input : inputs) inputs_.push_back(input.defined() ? input.clone() : input);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) inputs_[i].copy_(inputs[i]);
    step_(inputs_);
  }

 private:
  Step step_;
  Inputs inputs_;
};

TEST_F(LearnerTest, AStepDependsOnWhatLiesInTensorsAlone) {
  for (const char* precision : {"fp32", "bf16"}) {
    auto plain = learner(precision), recorded = learner(precision, std::make_unique<Recorded>());
    for (int step = 0; step < 4; ++step) {
      const auto images = torch::randn({8, 3, 32, 32});
      const float share = 0.2f * static_cast<float>(step);
      const tasks::Targets targets{.labels = (torch::arange(8) + step) % 4,
                                   .other_labels = (torch::arange(8) + 2 * step) % 3,
                                   .shares = torch::tensor({share, 1 - share}),
                                   .teacher = {}};
      for (auto* const each : {&plain, &recorded}) this->step(*each, images, targets, 1e-3 / (step + 1));
    }
    for (const auto& [name, tensor] : plain.state())
      EXPECT_TRUE(torch::equal(tensor, recorded.state().at(name))) << precision << ' ' << name;
  }
}

TEST_F(LearnerTest, InHalfPrecisionAnOverflowLeavesTheStepOut) {
  auto learner = this->learner("fp16");
  step(learner, images_, targets_, 1e-3);
  std::map<std::string, torch::Tensor> before;
  for (const auto& [name, tensor] : learner.state()) before[name] = tensor.clone();
  step(learner, images_ * 1e9, targets_, 1e-3);
  const auto after = learner.state();
  EXPECT_LT(after.at("scaler.scale").item<float>(), before.at("scaler.scale").item<float>());
  for (const auto& [name, tensor] : after)
    if (name.starts_with("adamw.")) {
      EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name;
    }
  EXPECT_TRUE(torch::equal(after.at("model.head.weight"), before.at("model.head.weight")));
}

}  // namespace
}  // namespace abl::trainer
