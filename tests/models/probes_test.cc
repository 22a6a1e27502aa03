// SPDX-License-Identifier: Apache-2.0
// What probes say of models that they cannot look into, and what no reference in Python computes; what they
// find in small models is compared with the references in tests/parity/probes_test.py.
#include <torch/utils.h>

#include "probes/probe.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "models/backbones/model_options.h"
#include "models/backbones/simple_vit.h"
#include "models/backbones/swin.h"
#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"
#include "models/counting/memory.h"

namespace abl::probes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A model of random weights, and random images.
class ProbesTest : public testing::Test {
 protected:
  template <class Options>
  Findings found(const Options& options, const nlohmann::json& request) {
    const auto build = [options](std::int64_t image_size) {
      auto sized = options;
      sized.image_size = image_size;
      torch::manual_seed(3);
      auto model = models::build(models::ModelOptions{sized});
      model->eval();
      return model;
    };
    const auto model = build(options.image_size);
    const Subject subject{.model = *model,
                          .image_size = options.image_size,
                          .images =
                              [&](std::int64_t count) {
                                const auto S = options.image_size;
                                return Shown{.input = torch::randn({count, 3, S, S}),
                                             .pixels = torch::zeros({count, S, S, 3}, torch::kByte),
                                             .names = counted(count)};
                              },
                          .at_size = build,
                          .accuracy =
                              [](models::Classifier&, std::int64_t image_size) {
                                return Accuracy{.top1 = static_cast<double>(image_size)};
                              }};
    return look(subject, protocol::read_probe(request));
  }
  template <class Options>
  std::string refusal(const Options& options, const nlohmann::json& request) {
    try {
      found(options, request);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  const models::VitOptions vit{
      .image_size = 32, .patch = 8, .classes = 10, .dim = 24, .depth = 2, .heads = 3};
  const models::XcitOptions xcit{.image_size = 32,
                                 .patch = 8,
                                 .classes = 10,
                                 .dim = 16,
                                 .heads = 2,
                                 .class_blocks = 2,
                                 .blocks = std::vector<models::XcitChoice>(2)};
  const models::SwinOptions swin{.image_size = 32,
                                 .patch = 4,
                                 .classes = 10,
                                 .dim = 12,
                                 .depths = {2, 1},
                                 .heads = {2, 4},
                                 .window = 4,
                                 .attention = std::vector<models::WindowAttentionChoice>(3)};
};

TEST_F(ProbesTest, EveryProbeThatIsDeclaredHasAFunction) {
  for (const auto& probe : protocol::probe_declarations()) EXPECT_NO_THROW(look_of(probe.name)) << probe.name;
}

TEST_F(ProbesTest, SayWhatAModelLacks) {
  EXPECT_THAT(refusal(vit, "code-norms"), HasSubstr("the model has no codes"));
  EXPECT_THAT(refusal(vit, "class-attention"), HasSubstr("the model has no blocks of class attention"));
  EXPECT_THAT(refusal(xcit, "attention"), HasSubstr("the model has no attention between tokens"));
  EXPECT_THAT(refusal(vit, {{"name", "attention"}, {"layer", 3}}),
              HasSubstr("attention.layer: invalid value 3; the model has 2 such layers"));
}

TEST_F(ProbesTest, MapsOfWindowsThatSeeAPartOfTheImageAreRefused) {
  EXPECT_THAT(refusal(swin, {{"name", "attention"}, {"layer", 2}}),
              HasSubstr("layer 2 of 3 attends within 4 windows of an image"));
  const auto last =
      found(swin, {{"name", "attention"}, {"images", 1}});  // a map of 4 × 4 tokens is one window
  EXPECT_THAT(last.arrays.at("map").values.sizes(), ElementsAre(1, 4, 4, 4));
  EXPECT_THAT(refusal(swin, {{"name", "attention"}, {"joint", true}}), HasSubstr("attends within 4 windows"));
}

TEST_F(ProbesTest, AttentionOfOneTokensSumsToOneWithItsOwn) {
  const auto maps = found(vit, {{"name", "attention"}, {"images", 3}}).arrays.at("map").values;
  EXPECT_THAT(maps.sizes(), ElementsAre(3, 3, 4, 4));
  EXPECT_TRUE(maps.sum({2, 3}).lt(1).all().item<bool>()) << "the class token has a share";
  const auto joint =
      found(vit, {{"name", "attention"}, {"images", 3}, {"joint", true}}).arrays.at("map").values;
  EXPECT_TRUE(joint.sum({2, 3}).lt(0.75).all().item<bool>()) << "of both residuals a quarter stays with it";
}

TEST_F(ProbesTest, AttentionOfTheClassTokenLeavesADistillationTokenOut) {
  auto distilled = vit;
  distilled.has_distillation_token = true;
  const auto maps = found(distilled, {{"name", "attention"}, {"images", 2}}).arrays.at("map").values;
  EXPECT_THAT(maps.sizes(), ElementsAre(2, 3, 4, 4));
  EXPECT_TRUE(maps.sum({2, 3}).lt(1).all().item<bool>()) << "both tokens have a share";
}

TEST_F(ProbesTest, RolesThatShareAMatrixSpanTheSameSpace) {
  const models::SimpleVitOptions shared{
      .image_size = 16,
      .patch = 8,
      .classes = 10,
      .dim = 24,
      .depth = 1,
      .heads = 3,
      .dim_head = 8,
      .mlp_dim = 24,
      .attention = {
          {.kernel = models::Kernel::kGaussian, .probe = models::Probe::kInside, .share = "QKKQQ"}}};
  const auto values = found(shared, "subspace-similarity").values;
  EXPECT_NEAR(values.at("query-probe"), 1, 1e-9);
  EXPECT_NEAR(values.at("key-value"), 1, 1e-9);
  EXPECT_NEAR(values.at("query-weight"), 1, 1e-9);
  EXPECT_LT(values.at("query-key"), 0.9);
}

/// Two heads with matrices as they are given.
struct GivenMatrices : torch::nn::Module, models::RoleMatrices {
  std::vector<models::RoleMatrix> role_matrices() const override { return matrices; }
  std::vector<models::RoleMatrix> matrices;
};
struct OneLayer : models::Classifier {
  OneLayer() { layer = register_module("layer", std::make_shared<GivenMatrices>()); }
  torch::Tensor forward(const torch::Tensor& images) override { return images; }
  std::shared_ptr<GivenMatrices> layer;
};

/// The matrix [d, columns] whose columns are these axes, and zeros where there is none.
torch::Tensor axes(std::int64_t d, const std::vector<std::int64_t>& numbers) {
  auto matrix = torch::zeros({d, static_cast<std::int64_t>(numbers.size())});
  for (std::size_t column = 0; column < numbers.size(); ++column)
    if (numbers[column] >= 0) matrix[numbers[column]][static_cast<std::int64_t>(column)] = 2;
  return matrix;
}

TEST(SubspaceSimilarity, OfFewerDirectionsIsTheMeanOverThoseThatThereAre) {
  OneLayer model;
  model.layer->matrices = {
      {models::kQuery, torch::stack({axes(6, {0, 1, 2}), axes(6, {0, 1, 2})})},
      {models::kKey, torch::stack({axes(6, {0, 3, -1}), axes(6, {3, 4, 5})})},        // the first spans two
      {models::kValue, torch::stack({axes(6, {3, 0, -1}), axes(6, {0, 1, -1})})},     // both do
      {models::kWeight, torch::stack({axes(6, {-1, -1, -1}), axes(6, {0, 1, 5})})}};  // the first spans none
  const auto found = look({.model = model}, protocol::read_probe("subspace-similarity"));
  const auto all = found.arrays.at("similarity").values[0];  // [heads, roles, roles]
  const auto similarity = [&](int head, models::Role x, models::Role y) {
    return all[head][x][y].item<double>();
  };
  EXPECT_NEAR(similarity(0, models::kQuery, models::kQuery), 1, 1e-12);
  EXPECT_NEAR(similarity(0, models::kKey, models::kKey), 1, 1e-12) << "with itself, whatever its rank";
  EXPECT_NEAR(similarity(0, models::kKey, models::kValue), 1, 1e-12) << "the same two directions";
  EXPECT_NEAR(similarity(0, models::kQuery, models::kKey), 0.5, 1e-12) << "one of two";
  EXPECT_NEAR(similarity(1, models::kQuery, models::kKey), 0, 1e-12);
  EXPECT_NEAR(similarity(1, models::kQuery, models::kValue), 1, 1e-12) << "within it";
  EXPECT_NEAR(similarity(1, models::kQuery, models::kWeight), 2.0 / 3, 1e-12);
  EXPECT_TRUE(std::isnan(similarity(0, models::kQuery, models::kWeight))) << "zeros span no space";
  EXPECT_NEAR(found.values.at("query-weight"), 2.0 / 3, 1e-12) << "the mean of the heads that have one";
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("4 of 8 matrices span fewer directions")));
}

TEST_F(ProbesTest, WhatIsWrongBesideTheSizeIsNoSizeLeftOut) {
  models::VitOptions small = vit;
  const auto model = models::build(models::ModelOptions{small});
  const auto fails_with = [&](Code code) {
    const Subject subject{.model = *model,
                          .image_size = 32,
                          .at_size =
                              [&](std::int64_t size) {
                                if (size != 32) throw Error{code, "the file is another one now"};
                                return models::build(models::ModelOptions{small});
                              },
                          .accuracy = [](models::Classifier&, std::int64_t) { return Accuracy{}; }};
    return look(subject, protocol::read_probe("accuracy-by-resolution")).notes.size();
  };
  EXPECT_EQ(fails_with(Code::kInvalidArgument), 5);
  EXPECT_THROW(fails_with(Code::kFailedPrecondition), Error);
  EXPECT_THROW(fails_with(Code::kDataLoss), Error);
}

TEST_F(ProbesTest, SizesThatTheModelDoesNotTakeAreLeftOutUnlessAskedFor) {
  const auto usual = found(vit, "accuracy-by-resolution");  // of 16, 24, 32, 40, 48, 64
  EXPECT_THAT(usual.arrays.at("top1").axes[0].places, ElementsAre("16", "24", "32", "40", "48", "64"));
  EXPECT_EQ(usual.values.at("top1-48"), 48);
  auto coarse = vit;
  coarse.patch = 16;
  const auto fewer = found(coarse, "accuracy-by-resolution");
  EXPECT_THAT(fewer.arrays.at("top1").axes[0].places, ElementsAre("16", "32", "48", "64"));
  EXPECT_THAT(fewer.notes, ElementsAre(HasSubstr("size 24 is left out"), HasSubstr("size 40 is left out")));
  EXPECT_THAT(refusal(vit, {{"name", "accuracy-by-resolution"}, {"sizes", {32, 36}}}),
              HasSubstr("accuracy-by-resolution.sizes: the model takes no images of 36 pixels: "));
}

TEST_F(ProbesTest, InferenceHoldsAtLeastWhatIsPredictedOfIt) {
  const auto found_here = found(xcit, {{"name", "inference-cost"}, {"sizes", {32, 64}}, {"batch", 8}}).values;
  for (const std::int64_t side : {32, 64}) {
    const auto predicted = models::predict_forward_memory(
        [&](torch::Device device) { return models::build(models::ModelOptions{xcit}, device); },
        {.batch = 8, .image_size = side});
    const double bytes = found_here.at("memory_bytes-" + std::to_string(side));
    EXPECT_GE(bytes, 0.99 * static_cast<double>(predicted.weights + predicted.peak));
    EXPECT_GT(found_here.at("images_per_s-" + std::to_string(side)), 0);
  }
  EXPECT_GT(found_here.at("memory_bytes-64"), 2 * found_here.at("memory_bytes-32"));
}

TEST(DrawMaps, ShowsAnImageAndOneTileAHead) {
  const auto pixels = torch::full({2, 8, 8, 3}, 100, torch::kByte);
  auto maps = torch::zeros({2, 1, 2, 2}, torch::kDouble);
  maps[0][0][0][1] = 3;  // the brightest of its map, in the upper right
  const auto image = draw_maps(pixels, maps);
  EXPECT_EQ(image.width, 112 + 4 + 112);
  EXPECT_EQ(image.height, 112 + 4 + 112);
  const auto brightness = [&](int x, int y) {
    const auto* pixel = image.row(y) + 3 * x;
    return pixel[0] + pixel[1] + pixel[2];
  };
  EXPECT_EQ(brightness(10, 10), 300);
  EXPECT_LT(brightness(116 + 10, 10), 30);
  EXPECT_GT(brightness(116 + 100, 10), 700);
  EXPECT_LT(brightness(116 + 100, 116 + 10), 30) << "a map of equal values is black";
  EXPECT_EQ(brightness(113, 113), 3 * 255) << "the gap";
}

}  // namespace
}  // namespace abl::probes
