// SPDX-License-Identifier: Apache-2.0
#include "models/dense/mask_rcnn/mask_rcnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <string>

#include "models/backbones/resnet.h"
#include "models/weights/layers_of_parameters.h"
#include "tests/dense/refused.h"
#include "tests/models/autocast.h"

namespace abl::models {
namespace {

using torch::Tensor;

MaskRcnn small_model(BackgroundOutputs background = BackgroundOutputs::kScoreBoxMask) {
  torch::manual_seed(1);
  MaskRcnnOptions options{.width = 16};
  options.heads = {.classes = 3, .background = background};
  options.heads.boxes.layers = {16};
  options.heads.masks.convolutions = {8};
  options.heads.masks.hidden = 8;
  return MaskRcnn{options, std::make_shared<ResNetImpl>(ResNetOptions{.layers = {1, 1, 1, 1},
                                                                      .widths = {8, 8, 16, 16},
                                                                      .has_bottlenecks = false,
                                                                      .has_head = false,
                                                                      .frozen_norms = true})};
}

ImageBatch images() { return {.images = torch::randn({2, 3, 64, 96}), .sizes = {{64, 96}, {50, 70}}}; }

Instances things() {
  return {.boxes = torch::tensor({{4., 4., 40., 50.}, {20., 10., 60., 30.}}, torch::kFloat),
          .labels = torch::tensor({1, 3}),
          .masks = torch::ones({2, 64, 96}, torch::kByte)};
}

Choose seeded(std::uint64_t seed) { return choose_by(at::detail::createCPUGenerator(seed)); }

TEST(MaskRcnn, TheSameSeedDrawsTheSameBoxes) {
  auto model = small_model();
  const auto batch = images();
  const auto loss = [&](std::uint64_t seed) {
    return model->losses(batch, {things(), things()}, seeded(seed)).sum().item<double>();
  };
  const auto first = loss(7);
  EXPECT_EQ(loss(7), first);
  EXPECT_NE(loss(8), first);
}

TEST(MaskRcnn, ADrawIsThatOfTorchRandperm) {
  torch::manual_seed(3);
  const auto expected = torch::randperm(20).narrow(0, 0, 6);
  EXPECT_TRUE(torch::equal(seeded(3)(0, 20, 6), expected));
}

TEST(MaskRcnn, AnImageWithoutThingsIsBackground) {
  auto model = small_model();
  const Instances none{.boxes = torch::zeros({0, 4}),
                       .labels = torch::zeros({0}, torch::kLong),
                       .masks = torch::zeros({0, 64, 96}, torch::kByte)};
  const auto losses = model->losses(images(), {none, none}, seeded(1));
  EXPECT_EQ(losses.boxes.item<double>(), 0);
  EXPECT_EQ(losses.masks.item<double>(), 0);
  EXPECT_EQ(losses.proposals.item<double>(), 0);
  EXPECT_GT(losses.classes.item<double>(), 0);
  losses.sum().backward();
  for (const auto& parameter : model->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
}

TEST(MaskRcnn, UnderAutocastLossesAreFloat32) {
  auto model = small_model();
  const auto batch = images();
  const auto exact = model->losses(batch, {things(), things()}, seeded(1)).sum().item<double>();
  const Autocast autocast;
  const auto losses = model->losses(batch, {things(), things()}, seeded(1));
  EXPECT_EQ(losses.sum().scalar_type(), torch::kFloat);
  EXPECT_NEAR(losses.sum().item<double>(), exact, 0.1 * exact);
}

/// The same numbers with and without outputs that nothing uses find the same.
TEST(MaskRcnn, TheBackgroundNeedsNoBoxAndNoMask) {
  auto with = small_model(), without = small_model(BackgroundOutputs::kScoreAlone);
  {
    const torch::NoGradGuard no_grad;
    const auto from = with->named_parameters();
    for (auto& parameter : without->named_parameters()) {
      const auto& name = parameter.key();
      auto values = from[name];
      const auto unused = values.size(0) - parameter.value().size(0);  // of the background, the first
      if (name.find("cls_score") != std::string::npos) values.mul_(20);
      parameter.value().copy_(values.narrow(0, unused, values.size(0) - unused));
    }
    for (auto& buffer : without->named_buffers()) buffer.value().copy_(with->named_buffers()[buffer.key()]);
  }
  const auto batch = images();
  const auto loss = [&](MaskRcnn& model) {
    return model->losses(batch, {things(), things()}, seeded(1)).sum().item<double>();
  };
  EXPECT_NEAR(loss(with), loss(without), 1e-5);
  const torch::NoGradGuard no_grad;
  with->eval(), without->eval();
  const auto a = with->detect(batch)[0], b = without->detect(batch)[0];
  ASSERT_GT(a.boxes.size(0), 0);
  EXPECT_TRUE(torch::equal(a.labels, b.labels));
  EXPECT_TRUE(torch::allclose(a.boxes, b.boxes));
  EXPECT_TRUE(torch::allclose(a.masks, b.masks, 1e-4, 1e-5));
}

TEST(MaskRcnn, NothingFoundIsNothing) {
  auto model = small_model();
  const torch::NoGradGuard no_grad;
  model->named_parameters()["roi_heads.box_predictor.cls_score.bias"][0] = 100;
  model->eval();
  const auto found = model->detect(images());
  for (const auto& image : found) {
    EXPECT_EQ(image.boxes.sizes(), torch::IntArrayRef({0, 4}));
    EXPECT_EQ(image.masks.sizes(), torch::IntArrayRef({0, 28, 28}));
  }
  EXPECT_EQ(pasted_masks(found[0].masks, found[0].boxes, {64, 96}).sizes(), torch::IntArrayRef({0, 64, 96}));
}

TEST(MaskRcnn, SaysWhatIsWrongWithATarget) {
  auto model = small_model();
  const auto said = [&](const std::function<void(Instances&)>& change) {
    auto changed = things();
    change(changed);
    return refused([&] { model->losses(images(), {things(), changed}, seeded(1)); });
  };
  EXPECT_THAT(
      said([](Instances& all) { all.boxes[1][2] = 20; }),
      testing::StartsWith("box 1 of image 1 is 20, 10 to 20, 30; a positive width and height are expected"));
  EXPECT_THAT(said([](Instances& all) { all.labels[0] = 4; }),
              testing::StartsWith("image 1 has a thing of class 4; 1 to 3 are expected"));
  EXPECT_THAT(said([](Instances& all) { all.labels[0] = 0; }),
              testing::StartsWith("image 1 has a thing of class 0; 1 to 3 are expected"));
  EXPECT_THAT(said([](Instances& all) { all.masks = all.masks.narrow(0, 0, 1); }),
              testing::StartsWith("image 1 has boxes [2, 4], labels [2] and masks [1, 64, 96]"));
  EXPECT_THAT(refused([&] { model->losses(images(), {things()}, seeded(1)); }),
              testing::StartsWith("1 targets for 2 images"));
  EXPECT_THAT(refused([] {
                MaskRcnn{MaskRcnnOptions{}, std::make_shared<torch::nn::ModuleListImpl>()};
              }),
              testing::HasSubstr("; expected one with feature maps"));
}

TEST(MaskRcnn, LayersAreThoseOfItsBackboneAndAllElseIsTheHead) {
  const auto layers = layers_of_parameters(*small_model());
  int last = 0;
  for (const auto& [name, layer] : layers) last = std::max(last, layer);
  EXPECT_GT(last, 3);
  EXPECT_EQ(layers.at("backbone.body.conv1.weight"), 0);
  for (const auto& [name, layer] : layers)
    EXPECT_EQ(layer < last, name.starts_with("backbone.body.")) << name;
}

}  // namespace
}  // namespace abl::models
