// SPDX-License-Identifier: Apache-2.0
#include "models/dino/dino.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "models/backbones/swin.h"
#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"
#include "models/dino/loss.h"
#include "models/weights/lowered_weights.h"
#include "models/weights/state.h"
#include "models/weights/weight_decay.h"
#include "models/weights/weights.h"

namespace abl::models {
namespace {

const DinoHeadOptions kHead{.prototypes = 24, .hidden = 32, .bottleneck = 8};

ModelOptions small_vit() {
  return VitOptions{
      .image_size = 32, .patch = 8, .dim = 16, .depth = 2, .heads = 2, .drop_path = {.rate = 0.5}};
}
ModelOptions small_xcit() {
  return XcitOptions{.image_size = 32, .patch = 8, .dim = 16, .heads = 2, .blocks = {{}, {}}};
}

std::map<std::string, torch::Tensor> copied(const torch::nn::Module& model) {
  std::map<std::string, torch::Tensor> copy;
  for (const auto& [name, tensor] : state_of(model)) copy.emplace(name, tensor.clone());
  return copy;
}

TEST(Dino, TheTeacherStartsAsTheStudentAndDoesNotLearn) {
  for (const auto& backbone : {small_vit(), small_xcit()}) {
    torch::manual_seed(1);
    DinoImpl model{backbone, kHead};
    const auto state = state_of(model);
    int of_the_teacher = 0;
    for (const auto& [name, tensor] : state)
      if (name.starts_with("teacher.")) {
        EXPECT_TRUE(tensor.equal(state.at("student." + name.substr(8)))) << name;
        EXPECT_NE(tensor.data_ptr(), state.at("student." + name.substr(8)).data_ptr()) << name;
        ++of_the_teacher;
      }
    EXPECT_EQ(2 * of_the_teacher + 1, static_cast<int>(state.size())) << "and the centre";
    EXPECT_TRUE(state.contains("centre.mean"));
    const auto images = torch::randn({2, 3, 32, 32});
    model.student().forward({images}).square().sum().backward();
    for (const auto& parameter : model.named_parameters()) {
      const bool is_fixed = parameter.key().ends_with("weight_g");
      EXPECT_EQ(parameter.value().grad().defined(), parameter.key().starts_with("student.") && !is_fixed)
          << parameter.key();
    }
    EXPECT_TRUE(model.teacher().forward({images}).equal(model.teacher().forward({images})))
        << "it has no stochastic depth, in training either";
  }
}

TEST(Dino, ViewsOfSeveralSizesAreDescribedAlike) {
  for (const auto& backbone : {small_vit(), small_xcit()}) {
    torch::manual_seed(2);
    DinoImpl model{backbone, kHead};
    model.eval();
    const auto large = torch::randn({2, 3, 32, 32}), small = torch::randn({3, 3, 16, 24});
    const auto together = model.student().forward({large, small});
    EXPECT_EQ(together.sizes(), (std::vector<std::int64_t>{5, 24}));
    EXPECT_TRUE(together.narrow(0, 0, 2).allclose(model.student().forward({large}), 1e-4, 1e-6));
    EXPECT_TRUE(together.narrow(0, 2, 3).allclose(model.student().forward({small}), 1e-4, 1e-6));
    EXPECT_LE(together.abs().max().item<double>(), 1 + 1e-6) << "cosines: rows and features have length 1";
    EXPECT_THROW(model.student().forward({torch::randn({1, 3, 20, 16})}), c10::ValueError);
  }
}

TEST(Dino, WithoutAClassifierAModelGivesItsFeatures) {
  for (const auto& options : {small_vit(), small_xcit()}) {
    torch::manual_seed(3);
    const auto model = build(without_classifier(options));
    model->eval();
    auto& features = dynamic_cast<ImageFeatures&>(*model);
    const auto images = torch::randn({2, 3, 32, 32});
    EXPECT_TRUE(model->forward(images).equal(features.features(images)));
    EXPECT_EQ(features.features(images).size(1), features.feature_width({}));
    for (const auto& parameter : model->named_parameters()) EXPECT_FALSE(parameter.key().starts_with("head"));
    EXPECT_THROW(features.features(images, {.blocks = 3}), c10::ValueError);
  }
  EXPECT_THROW(without_classifier(SwinOptions{}), c10::ValueError);
  const auto xcit = build(without_classifier(small_xcit()));
  EXPECT_THROW(dynamic_cast<ImageFeatures&>(*xcit).features(torch::randn({1, 3, 32, 32}), {.blocks = 2}),
               c10::ValueError);
}

TEST(Dino, TheTeacherAndTheCentreMoveByTheirMomentum) {
  torch::manual_seed(4);
  DinoImpl model{small_vit(), kHead};
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model.student().parameters()) parameter.add_(1);
  }
  const auto before = copied(model);
  model.follow(before, 1);
  for (const auto& [name, tensor] : state_of(model)) EXPECT_TRUE(tensor.equal(before.at(name))) << name;
  model.follow(before, 0.75);
  for (const auto& [name, tensor] : state_of(model))
    if (name.starts_with("teacher.")) {
      EXPECT_TRUE(tensor.allclose(before.at(name) + 0.25, 1e-5, 1e-6)) << name;
    }
  model.move_centre(torch::ones({24}), 0.9);
  EXPECT_TRUE(model.centre().allclose(torch::full({24}, 0.1)));
}

TEST(Dino, InSixteenBitsTheTeacherAndTheCentreKeepTheirs) {
  torch::manual_seed(5);
  DinoImpl model{small_xcit(), kHead};
  lower_weights(model, torch::kBFloat16);
  for (const auto& parameter : model.teacher().parameters())
    EXPECT_EQ(parameter.scalar_type(), torch::kFloat);
  EXPECT_EQ(weight_type(model.student()), torch::kBFloat16);
  EXPECT_EQ(model.centre().scalar_type(), torch::kFloat);
  const auto logits = model.student().forward({torch::randn({2, 3, 32, 32}).to(torch::kBFloat16)});
  logits.to(torch::kFloat).square().sum().backward();
  EXPECT_EQ(logits.scalar_type(), torch::kBFloat16);
  model.to(torch::kBFloat16);
  EXPECT_EQ(model.centre().scalar_type(), torch::kFloat);
}

TEST(Dino, WhatDecaysIsWhatTheReleaseDecays) {
  DinoImpl model{small_vit(), kHead};
  const auto undecayed = models::undecayed(model);
  for (const auto& parameter : model.named_parameters())
    EXPECT_EQ(undecayed.contains(parameter.key()), parameter.value().dim() == 1) << parameter.key();
}

TEST(Dino, OtherModelsStartFromItsTeachersBackbone) {
  for (const auto& options : {small_vit(), small_xcit()}) {
    torch::manual_seed(7);
    DinoImpl model{options, kHead};
    {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : model.teacher().parameters()) parameter.add_(1);
    }
    const auto state = state_of(model);
    State network;  // as the release has its teacher
    for (const auto& [name, tensor] : state)
      if (name.starts_with("teacher.")) network.emplace("module." + name.substr(8), tensor);
    for (const auto& given : {state, network}) {
      const auto trunk = build(without_classifier(options)), classifier = build(options);
      load_weights(*trunk, given);
      const auto loaded = load_weights(*classifier, given, {.fresh_head = true});
      EXPECT_EQ(loaded.fresh, (std::vector<std::string>{"head.bias", "head.weight"}));
      for (const auto& [name, tensor] : state_of(*trunk)) {
        EXPECT_TRUE(tensor.equal(state.at("teacher.backbone." + name))) << name;
        EXPECT_TRUE(tensor.equal(state_of(*classifier).at(name))) << name;
      }
    }
    const auto again = std::make_shared<DinoImpl>(options, kHead);
    load_weights(*again, state);
    EXPECT_TRUE(state_of(*again).at("centre.mean").equal(state.at("centre.mean")));
    EXPECT_TRUE(
        state_of(*again).at("student.head.mlp.0.weight").equal(state.at("student.head.mlp.0.weight")));
  }
}

TEST(Dino, AModelWithoutAClassifierStartsFromOneThatHasOne) {
  const auto whole = build(small_vit()), trunk = build(without_classifier(small_vit()));
  EXPECT_ANY_THROW(load_weights(*trunk, state_of(*whole))) << "unless it is said that the head may differ";
  load_weights(*trunk, state_of(*whole), {.fresh_head = true});
  for (const auto& [name, tensor] : state_of(*trunk)) EXPECT_TRUE(tensor.equal(state_of(*whole).at(name)));
}

TEST(DinoLoss, IsLeastWhereTheStudentSaysWhatTheTeacherSays) {
  torch::manual_seed(6);
  const auto said = torch::randn({1, 3, 7}).expand({2, 3, 7});  // of every view the same
  const auto targets = teacher_targets(said, torch::zeros({7}), 0.5);
  const auto entropy = -(targets * targets.log()).sum(-1).mean();
  EXPECT_NEAR(self_distillation_loss(said, targets, 0.5).item<double>(), entropy.item<double>(), 1e-5);
  EXPECT_GT(self_distillation_loss(said + torch::randn({2, 3, 7}), targets, 0.5).item<double>(),
            entropy.item<double>());
}

TEST(DinoLoss, LeavesOutTheTeachersOwnView) {
  auto logits = torch::zeros({2, 1, 3});
  logits[0][0][0] = 50, logits[1][0][1] = 50;  // each says what the other one is to say
  auto targets = torch::zeros({2, 1, 3});
  targets[0][0][1] = 1, targets[1][0][0] = 1;
  EXPECT_NEAR(self_distillation_loss(logits, targets, 1).item<double>(), 0, 1e-6);
  EXPECT_NEAR(self_distillation_loss(logits, targets.flip(0), 1).item<double>(), 50, 1e-4);
}

TEST(DinoLoss, ACentreTakesFromWhatAllViewsSay) {
  const auto logits = torch::tensor({2.0f, 1.0f, 0.0f}).view({1, 1, 3});
  const auto flat = teacher_targets(logits, logits.view({3}), 0.04);
  EXPECT_TRUE(flat.allclose(torch::full({1, 1, 3}, 1.0 / 3)));
  EXPECT_GT(teacher_targets(logits, torch::zeros({3}), 0.04)[0][0][0].item<double>(), 0.99);
}

TEST(DinoLoss, RefusesWhatHasNoPairsOfViews) {
  EXPECT_THROW(self_distillation_loss(torch::zeros({1, 2, 3}), torch::zeros({1, 2, 3}), 1), c10::ValueError);
  EXPECT_THROW(self_distillation_loss(torch::zeros({2, 2, 3}), torch::zeros({3, 2, 3}), 1), c10::ValueError);
  EXPECT_THROW(self_distillation_loss(torch::zeros({2, 0, 3}), torch::zeros({2, 0, 3}), 1), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
