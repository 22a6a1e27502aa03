// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/backbones/simple_vit.h"
#include "models/weights/state.h"
#include "worker/trainer/tasks/classify/loss.h"
#include "worker/trainer/training/mixed_precision.h"
#include "worker/trainer/training/weight_average.h"

namespace abl::trainer {
namespace {

using config::RecipeConfig;

tasks::Targets labelled(const torch::Tensor& labels) {
  return {.labels = labels, .other_labels = {}, .shares = {}, .teacher = {}};
}

TEST(LossTest, OfMixedLabelsIsTheCrossEntropyOfTheMixedDistribution) {
  torch::manual_seed(1);
  const auto logits = torch::randn({4, 5}, torch::kDouble);
  RecipeConfig recipe;
  recipe.label_smoothing = 0.1;
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  targets.other_labels = targets.labels.flip(0), targets.shares = torch::tensor({0.3, 0.7}, torch::kDouble);
  const auto one_hot = [](const torch::Tensor& labels) {
    return torch::one_hot(labels, 5).to(torch::kDouble);
  };
  const auto soft = 0.3 * one_hot(targets.labels) + 0.7 * one_hot(targets.other_labels);
  const auto smoothed = 0.9 * soft + 0.1 / 5;
  const auto expected = -(smoothed * logits.log_softmax(1)).sum(1).mean();
  EXPECT_NEAR(tasks::loss_of({logits}, targets, recipe).item<double>(), expected.item<double>(), 1e-12);
}

TEST(LossTest, AHardTeacherGivesItsMostLikelyClass) {
  torch::manual_seed(2);
  const auto logits = torch::randn({4, 5}, torch::kDouble), teacher = torch::randn({4, 5}, torch::kDouble);
  RecipeConfig recipe;
  recipe.distillation = config::Distillation::kHard, recipe.distillation_share = 0.25;
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  const double own = tasks::loss_of({logits}, targets, recipe).item<double>();
  targets.teacher = teacher;
  const double taught = torch::cross_entropy_loss(logits, teacher.argmax(1)).item<double>();
  EXPECT_NEAR(tasks::loss_of({logits}, targets, recipe).item<double>(), 0.75 * own + 0.25 * taught, 1e-12);
}

TEST(LossTest, ASoftTeacherGivesItsProbabilitiesAtATemperature) {
  torch::manual_seed(3);
  const auto logits = torch::randn({4, 5}, torch::kDouble), teacher = torch::randn({4, 5}, torch::kDouble);
  RecipeConfig recipe;
  recipe.distillation = config::Distillation::kSoft, recipe.distillation_share = 1,
  recipe.distillation_temperature = 3;
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  targets.teacher = teacher;
  const auto p = (teacher / 3).softmax(1), q = (logits / 3).softmax(1);
  const double divergence = (p * (p / q).log()).sum().item<double>() * 9 / 20;
  EXPECT_NEAR(tasks::loss_of({logits}, targets, recipe).item<double>(), divergence, 1e-12);
  targets.teacher = logits;
  EXPECT_NEAR(tasks::loss_of({logits}, targets, recipe).item<double>(), 0, 1e-12);
}

TEST(LossTest, OfEachClassByItselfIsTheOneOfItsTargets) {
  torch::manual_seed(5);
  const auto logits = torch::randn({4, 5}, torch::kDouble);
  RecipeConfig recipe;
  recipe.loss = config::Loss::kBinaryCrossEntropy, recipe.label_smoothing = 0.1;
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  const auto one_hot = [](const torch::Tensor& labels) {
    return torch::one_hot(labels, 5).to(torch::kDouble);
  };
  const auto expected = [&](const torch::Tensor& wanted) {
    return -(wanted * logits.sigmoid().log() + (1 - wanted) * (1 - logits.sigmoid()).log())
                .mean()
                .item<double>();
  };
  const auto loss = [&] { return tasks::loss_of({logits}, targets, recipe).item<double>(); };
  EXPECT_NEAR(loss(), expected(0.9 * one_hot(targets.labels) + 0.1 / 5), 1e-12);
  targets.other_labels = targets.labels.flip(0), targets.shares = torch::tensor({0.3, 0.7}, torch::kDouble);
  EXPECT_NEAR(loss(),
              expected(0.9 * (0.3 * one_hot(targets.labels) + 0.7 * one_hot(targets.other_labels)) + 0.1 / 5),
              1e-12);
  recipe.target_threshold = 0.2;
  EXPECT_NEAR(loss(), expected(one_hot(targets.labels) + one_hot(targets.other_labels)), 1e-12)
      << "both labels are there";
  recipe.target_threshold = 0.5;
  EXPECT_NEAR(loss(), expected(one_hot(targets.other_labels)), 1e-12);
}

TEST(LossTest, AHeadOfItsOwnLearnsFromTheTeacherAndTheOtherFromLabels) {
  torch::manual_seed(6);
  const models::Answers answers{torch::randn({4, 5}, torch::kDouble), torch::randn({4, 5}, torch::kDouble)};
  RecipeConfig recipe;
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  EXPECT_NEAR(
      tasks::loss_of(answers, targets, recipe).item<double>(),
      torch::cross_entropy_loss((answers.logits + answers.distilled) / 2, targets.labels).item<double>(),
      1e-12)
      << "without a teacher it is the mean that learns";
  recipe.distillation = config::Distillation::kHard, recipe.distillation_share = 0.25;
  targets.teacher = torch::randn({4, 5}, torch::kDouble);
  const double own = torch::cross_entropy_loss(answers.logits, targets.labels).item<double>(),
               taught =
                   torch::cross_entropy_loss(answers.distilled, targets.teacher.argmax(1)).item<double>();
  EXPECT_NEAR(tasks::loss_of(answers, targets, recipe).item<double>(), 0.75 * own + 0.25 * taught, 1e-12);
}

torch::Tensor numbered_images() {  // image i holds i everywhere
  return torch::arange(4, torch::kFloat).view({4, 1, 1, 1}).expand({4, 3, 8, 8}).clone();
}

TEST(MixBatchTest, MixUpAveragesOppositeImages) {
  auto images = numbered_images();
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  tasks::mix_batch({.kind = images::Mix::Kind::kMixUp, .lambda = 0.75, .box = {}}, images, targets);
  EXPECT_NEAR(images[0][0][0][0].item<float>(), 0.75f * 0 + 0.25f * 3, 1e-6);
  EXPECT_NEAR(images[2][1][7][7].item<float>(), 0.75f * 2 + 0.25f * 1, 1e-6);
  EXPECT_TRUE(torch::equal(targets.other_labels, torch::tensor({3, 2, 1, 0})));
  EXPECT_TRUE(torch::equal(targets.shares, torch::tensor({0.75f, 0.25f})));
}

TEST(MixBatchTest, ABatchThatIsNotMixedHasTheSameLossToTheBitAsWithoutMixing) {
  auto images = numbered_images();
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  const auto logits = torch::randn({4, 5});
  const auto plain = tasks::loss_of({logits}, targets, RecipeConfig{});
  tasks::mix_batch({}, images, targets);
  EXPECT_TRUE(torch::equal(images, numbered_images()));
  EXPECT_TRUE(targets.other_labels.defined()) << "every step of a recipe takes the same operations";
  EXPECT_TRUE(torch::equal(tasks::loss_of({logits}, targets, RecipeConfig{}), plain));
}

TEST(MixBatchTest, CutMixPutsARectangleOfTheOppositeImage) {
  auto images = numbered_images();
  auto targets = labelled(torch::tensor({0, 1, 2, 3}));
  tasks::mix_batch({.kind = images::Mix::Kind::kCutMix,
                    .lambda = 0.9375,
                    .box = {.left = 1, .top = 2, .width = 2, .height = 2}},
                   images, targets);
  EXPECT_EQ(images[0].eq(3).sum().item<int>(), 3 * 4);
  EXPECT_EQ(images[0][0][2][1].item<float>(), 3);
  EXPECT_EQ(images[0][0][4][1].item<float>(), 0);
  EXPECT_EQ(images[3].eq(0).sum().item<int>(), 3 * 4) << "the partner gets what was there before";
}

TEST(MixBatchTest, ARecipeSaysWhichKindsThereAre) {
  const auto kinds = [](const char* mixing) {
    RecipeConfig recipe;
    recipe.mixing = *value_named<config::MixingKind>(mixing), recipe.mixing_alpha = 0.8,
    recipe.cutmix_alpha = 1, recipe.mixing_probability = 0.8;
    std::map<images::Mix::Kind, int> count;
    for (std::uint64_t step = 0; step < 500; ++step) {
      images::RandomStream random{0, images::Purpose::kMixing, {step}};
      ++count[tasks::draw_mix_of(recipe, 32, random).kind];
    }
    return count;
  };
  EXPECT_EQ(kinds("none")[images::Mix::Kind::kNone], 500);
  EXPECT_EQ(kinds("mixup")[images::Mix::Kind::kCutMix], 0);
  EXPECT_EQ(kinds("cutmix")[images::Mix::Kind::kMixUp], 0);
  auto both = kinds("mixup-or-cutmix");
  EXPECT_NEAR(both[images::Mix::Kind::kMixUp], 200, 45);
  EXPECT_NEAR(both[images::Mix::Kind::kCutMix], 200, 45);
}

std::shared_ptr<models::Classifier> small_model() {
  models::SimpleVitOptions options{.image_size = 8,
                                   .patch = 4,
                                   .classes = 3,
                                   .dim = 8,
                                   .depth = 1,
                                   .heads = 1,
                                   .dim_head = 8,
                                   .mlp_dim = 16,
                                   .attention = {}};
  options.attention.resize(1);
  return std::make_shared<models::SimpleVitImpl>(options);
}

TEST(WeightAverageTest, MovesByItsDecayAndGoesOnFromItsState) {
  torch::manual_seed(4);
  const auto model = small_model();
  training::WeightAverage average{small_model(), models::state_of(*model), 0.9};
  const auto before = models::state_of(*model).begin()->second.clone();
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.add_(1);
  }
  average.follow(models::state_of(*model));
  EXPECT_TRUE(models::state_of(average.model()).begin()->second.allclose(before + 0.1));
  training::WeightAverage resumed{small_model(), models::state_of(*model), 0.9};
  resumed.load(average.state());
  for (auto* const each : {&average, &resumed}) each->follow(models::state_of(*model));
  for (const auto& [name, tensor] : average.state())
    EXPECT_TRUE(torch::equal(tensor, resumed.state().at(name)));
  EXPECT_THROW(resumed.load({}), Error);
}

TEST(LossScalerTest, DividesGradientsAndTellsWhichStepIsNotFinite) {
  const auto model = small_model();
  const training::MasterWeights weights{model, torch::kFloat};
  training::LossScaler scaler{torch::kCPU};
  EXPECT_EQ(scaler.factor(), 65536);
  const auto backward = [&](double factor) {
    auto loss = torch::zeros({});
    for (const auto& parameter : model->parameters()) loss = loss + parameter.sum() * factor;
    scaler.scale(loss).backward();
  };
  backward(2);
  EXPECT_EQ(scaler.unscale(weights.weights()).item<float>(), 0);
  EXPECT_NEAR(model->parameters()[0].grad().flatten()[0].item<float>(), 2, 1e-6);
  for (auto& parameter : model->parameters()) parameter.mutable_grad() = torch::Tensor{};
  backward(1e38);
  EXPECT_EQ(scaler.unscale(weights.weights()).item<float>(), 1);
  EXPECT_EQ(scaler.factor(), 32768);
}

}  // namespace
}  // namespace abl::trainer
