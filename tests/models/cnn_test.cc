// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "models/backbones/efficient_net.h"
#include "models/backbones/reg_net.h"
#include "models/backbones/resnet.h"
#include "models/counting/parameters.h"
#include "tests/models/refusal.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

const SmallModel kSmallResNet{"resnet",
                              ResNetOptions{.image_size = 64, .classes = 10, .layers = {1, 1, 1, 1}}};
const SmallModel kSmallEfficientNet{"efficientnet", EfficientNetOptions{.image_size = 64, .classes = 10}};
const SmallModel kSmallRegNet{"regnet",
                              RegNetOptions{.image_size = 64,
                                            .classes = 10,
                                            .stages = {{.depth = 1, .width = 48, .group_width = 16},
                                                       {.depth = 2, .width = 96, .group_width = 16}}}};

ResNetOptions small_resnet() {
  return {
      .classes = 5, .layers = {1, 2, 1, 1}, .widths = {16, 16, 16, 16}, .groups = 2, .width_per_group = 32};
}

EfficientNetOptions small_efficient_net() {
  return {.classes = 5,
          .stem = 8,
          .head = 16,
          .stages = {{.depth = 1, .width = 8, .expansion = 1}, {.depth = 2, .width = 12, .stride = 2}}};
}

RegNetRule small_rule() {
  return {.depth = 7, .initial_width = 16, .width_slope = 14, .width_multiplier = 1.8, .group_width = 8};
}

RegNetOptions small_reg_net() { return {.classes = 5, .stem = 16, .stages = stages_of(small_rule())}; }

struct Sum {
  std::int64_t all = 0, weights = 0;
};

template <class Impl, class Options>
Sum parameters_of(const Options& options) {
  const auto model = std::make_shared<Impl>(options, torch::kMeta);
  Sum sum;
  for (const auto& entry : list_parameters(*model)) {
    sum.all += entry.elements;
    if (entry.is_weight) sum.weights += entry.elements;
  }
  return sum;
}

/// As the MSF paper prints weights, in millions.
std::string printed(const Sum& sum) { return fmt::format("{:.2f}", static_cast<double>(sum.weights) / 1e6); }

TEST(Cnns, HaveTheParametersOfTheReleasesAndPrintTheWeightsOfMsfTable6) {
  const auto resnet_50 = parameters_of<ResNetImpl>(ResNetOptions{});
  EXPECT_EQ(resnet_50.all, 25'557'032);
  EXPECT_EQ(printed(resnet_50), "25.50");
  const auto resnet_101 = parameters_of<ResNetImpl>(ResNetOptions{.layers = {3, 4, 23, 3}});
  EXPECT_EQ(resnet_101.all, 44'549'160);
  EXPECT_EQ(printed(resnet_101), "44.44");
  const auto resnext_50 = parameters_of<ResNetImpl>(ResNetOptions{.groups = 32, .width_per_group = 4});
  EXPECT_EQ(resnext_50.all, 25'028'904);
  EXPECT_EQ(printed(resnext_50), "24.96");
  const auto resnext_101 =
      parameters_of<ResNetImpl>(ResNetOptions{.layers = {3, 4, 23, 3}, .groups = 32, .width_per_group = 8});
  EXPECT_EQ(resnext_101.all, 88'791'336);
  EXPECT_EQ(printed(resnext_101), "88.59");
  const auto efficient_net = parameters_of<EfficientNetImpl>(EfficientNetOptions{});
  EXPECT_EQ(efficient_net.all, 5'288'548);
  EXPECT_EQ(printed(efficient_net), "5.24");
  EXPECT_EQ(parameters_of<RegNetImpl>(RegNetOptions{}).all, 83'590'140);
}

TEST(EfficientNet, ScaledHasTheParametersOfTheLargerReleases) {
  const auto all = [](double width, double depth) {
    return parameters_of<EfficientNetImpl>(scaled(EfficientNetOptions{}, width, depth)).all;
  };
  EXPECT_EQ(all(1.0, 1.1), 7'794'184) << "B1";
  EXPECT_EQ(all(1.1, 1.2), 9'109'994) << "B2";
  EXPECT_EQ(all(1.4, 1.8), 19'341'616) << "B4";
  EXPECT_EQ(all(2.0, 3.1), 66'347'960) << "B7";
}

TEST(RegNet, DerivesTheStagesOf16GfFromThePublishedRule) {
  EXPECT_THAT(stages_of(RegNetRule{}),
              ::testing::ElementsAre(RegNetStageSize{2, 224, 112}, RegNetStageSize{4, 448, 112},
                                     RegNetStageSize{11, 1232, 112}, RegNetStageSize{1, 3024, 112}));
}

/// Trains one step from a state in which no normalisation starts at 0.
void expect_gradients(Classifier& model) {
  for (auto& parameter : model.parameters()) {
    const torch::NoGradGuard no_grad;
    parameter.add_(torch::randn_like(parameter), 0.1);
  }
  const auto logits = model.forward(torch::randn({3, 3, 64, 64}));
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{3, 5}));
  torch::cross_entropy_loss(logits, torch::tensor({0, 1, 2})).backward();
  for (const auto& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
  }
}

TEST(Cnns, TrainEveryParameter) {
  torch::manual_seed(1);
  ResNetImpl resnet{small_resnet()};
  expect_gradients(resnet);
  EfficientNetImpl efficient_net{small_efficient_net()};
  expect_gradients(efficient_net);
  RegNetImpl reg_net{small_reg_net()};
  expect_gradients(reg_net);
}

TEST(Cnns, TakeImagesOfAnySize) {
  ResNetImpl resnet{small_resnet()};
  EfficientNetImpl efficient_net{small_efficient_net()};
  RegNetImpl reg_net{small_reg_net()};
  for (Classifier* model : {static_cast<Classifier*>(&resnet), static_cast<Classifier*>(&efficient_net),
                            static_cast<Classifier*>(&reg_net)}) {
    model->eval();
    for (const std::int64_t size : {33, 48})
      EXPECT_EQ(model->forward(torch::randn({2, 3, size, size})).sizes(), (std::vector<std::int64_t>{2, 5}));
  }
}

TEST(ResNet, ABlockStartsAsItsShortcutWhereTheLastNormalisationStartsAtZero) {
  torch::manual_seed(2);
  const ResNetBlockOptions options{.in = 8, .width = 4, .out = 8};
  ResNetBlockImpl block{options};
  const auto x = torch::rand({2, 8, 6, 6});
  EXPECT_TRUE(torch::equal(block.forward(x), x));
  auto ones = options;
  ones.zero_init_last = false;
  EXPECT_FALSE(torch::equal(ResNetBlockImpl{ones}.forward(x), x));
}

TEST(SqueezeExcite, ScalesAChannelByWhatTheMeansSay) {
  SqueezeExciteImpl part{SqueezeExciteOptions{.channels = 4, .reduced = 2}};
  const auto x = torch::rand({2, 4, 5, 5}) + 1;
  const auto factor = part.forward(x) / x;
  EXPECT_TRUE(torch::allclose(factor, factor.mean({2, 3}, /*keepdim=*/true).expand_as(factor)));
  const auto shuffled = x.flatten(2).index_select(2, torch::randperm(25)).reshape(x.sizes());
  EXPECT_TRUE(torch::allclose(part.forward(shuffled) / shuffled, factor, 1e-5, 1e-6));
}

TEST(Cnns, RefuseWhatDoesNotFitInOneLine) {
  auto resnet = small_resnet();
  resnet.layers = {1, 2};
  EXPECT_EQ(refusal<ResNetImpl>(resnet),
            "layers of 2 stages and widths of 4 of a ResNet; 4 of each are expected");
  resnet = small_resnet();
  resnet.width_per_group = 2;
  EXPECT_EQ(refusal<ResNetImpl>(resnet),
            "a stage of width 16 of a ResNet with width_per_group 2; at least one channel for each group is "
            "expected");
  resnet = small_resnet();
  resnet.groups = 0;
  EXPECT_EQ(refusal<ResNetImpl>(resnet), "groups 0 of a ResNet; it must be positive");
  auto efficient_net = small_efficient_net();
  efficient_net.stages[1].kernel = 4;
  EXPECT_EQ(refusal<EfficientNetImpl>(efficient_net),
            "kernel 4 of a stage of an EfficientNet; an odd size is expected");
  efficient_net.stages.clear();
  EXPECT_EQ(refusal<EfficientNetImpl>(efficient_net), "no stages of an EfficientNet; at least 1 is expected");
  efficient_net = small_efficient_net();
  efficient_net.stem = 2;
  EXPECT_EQ(refusal<EfficientNetImpl>(efficient_net),
            "squeeze and excitation of 2 channels by way of 0; both must be positive");
  auto reg_net = small_reg_net();
  reg_net.stages[1].width += 1;
  EXPECT_THAT(refusal<RegNetImpl>(reg_net),
              ::testing::HasSubstr("a multiple of its group width 8 is expected"));
  reg_net.stages.clear();
  EXPECT_EQ(refusal<RegNetImpl>(reg_net), "a RegNet without stages");
}

TEST(RegNet, RefusesARuleThatDerivesNothing) {
  auto rule = small_rule();
  rule.initial_width = 20;
  EXPECT_THROW(stages_of(rule), c10::ValueError);
  rule = small_rule();
  rule.width_multiplier = 1;
  EXPECT_THROW(stages_of(rule), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
