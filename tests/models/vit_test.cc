// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/backbones/vit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/counting/parameters.h"
#include "models/embedding/positions.h"
#include "tests/models/autocast.h"
#include "tests/models/bfloat16.h"
#include "tests/models/position_tables.h"
#include "tests/models/refusal.h"
#include "tests/models/relative_error.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

const SmallModel kSmallVit{
    "vit", VitOptions{.image_size = 64, .patch = 8, .classes = 10, .dim = 96, .depth = 3, .heads = 3}};

std::int64_t vit_parameters(const VitOptions& options) {
  std::int64_t sum = 0;
  const Vit model{options, torch::kMeta};
  for (const auto& entry : list_parameters(*model)) sum += entry.elements;
  return sum;
}

TEST(VitCounts, AreThoseOfTimm) {
  EXPECT_EQ(vit_parameters({.dim = 192, .heads = 3}), 5'717'416);
  EXPECT_EQ(vit_parameters({}), 22'050'664);
  EXPECT_EQ(vit_parameters({.dim = 768, .heads = 12}), 86'567'656);
  EXPECT_EQ(vit_parameters({}) - vit_parameters({.has_qkv_bias = false}), 12 * 3 * 384);
}

VitOptions small() { return {.image_size = 32, .patch = 8, .classes = 5, .dim = 16, .depth = 2, .heads = 2}; }

TEST(Vit, TrainsEveryParameter) {
  torch::manual_seed(1);
  VitImpl model{small()};
  const auto logits = model.forward(torch::randn({3, 3, 32, 32}));
  ASSERT_EQ(logits.sizes(), (torch::IntArrayRef{3, 5}));
  torch::cross_entropy_loss(logits, torch::tensor({0, 1, 2})).backward();
  for (const auto& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
  }
}

TEST(Vit, OfDeitsThirdVersionAndWithADistillationTokenTrainsEveryParameter) {
  torch::manual_seed(1);
  auto options = small();
  options.layer_scale = 1e-2, options.has_class_position = false, options.has_distillation_token = true;
  VitImpl model{options};
  const auto answers = model.answer(torch::randn({3, 3, 32, 32}));
  ASSERT_EQ(answers.distilled.sizes(), (torch::IntArrayRef{3, 5}));
  const auto labels = torch::tensor({0, 1, 2});
  (torch::cross_entropy_loss(answers.logits, labels) +
   torch::cross_entropy_loss(answers.distilled, labels.flip(0)))
      .backward();
  for (const auto& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
  }
  EXPECT_EQ(model.named_parameters()["pos_embed"].size(1), 16) << "of the patches alone";
  EXPECT_EQ(model.named_parameters()["blocks.1.ls2.gamma"].max().item<float>(), 1e-2f);
}

TEST(Vit, WithADistillationTokenIsEvaluatedByTheMeanOfItsHeads) {
  torch::manual_seed(4);
  auto options = small();
  options.has_distillation_token = true;
  VitImpl model{options};
  model.eval();
  const auto images = torch::randn({2, 3, 32, 32});
  const auto [logits, distilled] = model.answer(images);
  EXPECT_FALSE(torch::allclose(logits, distilled));
  EXPECT_TRUE(torch::allclose(model.forward(images), (logits + distilled) / 2));
}

TEST(Vit, StartsAsTimms) {
  torch::manual_seed(2);
  VitImpl model{{.image_size = 32, .dim = 96, .depth = 1, .heads = 3}};
  const auto parameters = model.named_parameters();
  const auto deviation = [&](const char* name) { return parameters[name].std().item<double>(); };
  EXPECT_NEAR(deviation("blocks.0.mlp.fc1.weight"), 0.02, 5e-4);
  EXPECT_NEAR(deviation("head.weight"), 0.02, 5e-4);
  EXPECT_NEAR(deviation("pos_embed"), 0.02, 2e-3);
  EXPECT_LT(parameters["cls_token"].abs().max().item<double>(), 1e-5);
  EXPECT_EQ(parameters["blocks.0.attn.qkv.bias"].abs().max().item<double>(), 0);
}

TEST(Vit, TrainsInBfloat16UnderAutocast) {
  torch::manual_seed(3);
  VitImpl model{small()};
  const auto images = torch::randn({2, 3, 32, 32});
  expect_close_in_bfloat16(model, images, 0.02);
}

std::string vit_refusal_of(void (*change)(VitOptions&)) {
  auto options = small();
  change(options);
  return refusal<VitImpl>(options);
}

TEST(Vit, RefusesInOneLineOptionsThatDoNotFitTogether) {
  EXPECT_EQ(vit_refusal_of([](auto& options) { options.image_size = 30; }),
            "images of 30 pixels cannot be cut into patches of 8");
  EXPECT_EQ(vit_refusal_of([](auto& options) { options.heads = 3; }), "3 heads do not divide the width 16");
  EXPECT_THAT(vit_refusal_of([](auto& options) { options.classes = -1; }),
              ::testing::HasSubstr("with -1 classes"));
  EXPECT_THAT(vit_refusal_of([](auto& options) { options.layer_scale = -1; }),
              ::testing::HasSubstr("LayerScale of -1"));
  EXPECT_THAT(vit_refusal_of([](auto& options) { options.mlp_ratio = 0; }),
              ::testing::HasSubstr("MLP of 0 widths"));
  VitImpl model{small()};
  EXPECT_THROW(model.forward(torch::zeros({1, 3, 40, 40})), c10::ValueError);
}

/// The table that write_position_tables.py resizes.
torch::Tensor wave(std::int64_t side) {
  const auto count = 2 * (1 + side * side);
  return torch::sin(0.7 * torch::arange(count, torch::kDouble)).to(torch::kFloat).view({1, -1, 2});
}

TEST(InterpolatePositions, ResizesAsTimm) {
  const auto expect_table = [](const torch::Tensor& got, const std::vector<float>& values) {
    const auto expected = torch::tensor(values).view({1, -1, 2});
    EXPECT_LT(relative_error(got, expected), 1e-5);
  };
  expect_table(interpolate_positions(wave(3), 5, 5), kLarger);
  expect_table(interpolate_positions(wave(4), 2, 3), kSmaller);
}

TEST(InterpolatePositions, IsTheResizingOperatorWithItsGradient) {
  const auto resized =
      [](const torch::Tensor& table) {  // [1, 2, 16, 2]: what it does with the image of a table
        return at::_upsample_bicubic2d_aa(table.narrow(1, 1, 16).view({1, 4, 4, 2}).permute({0, 3, 1, 2}),
                                          {7, 3}, false)
            .permute({0, 2, 3, 1})
            .reshape({1, 21, 2});
      };
  const auto one = wave(4).narrow(1, 0, 17).clone().requires_grad_(),
             other = one.detach().clone().requires_grad_();
  const auto got = interpolate_positions(one, 7, 3), expected = resized(other);
  EXPECT_LT(relative_error(got.narrow(1, 1, 21), expected), 1e-6);
  const auto along = torch::cos(torch::arange(42, torch::kFloat)).view({1, 21, 2});
  (got.narrow(1, 1, 21) * along).sum().backward();
  (expected * along).sum().backward();
  EXPECT_LT(relative_error(one.grad(), other.grad()), 1e-6);
}

TEST(InterpolatePositions, IsInFloat32UnderAutocast) {
  const auto exact = interpolate_positions(wave(4), 7, 3);
  const Autocast autocast;
  EXPECT_TRUE(torch::equal(interpolate_positions(wave(4), 7, 3), exact));
}

TEST(InterpolatePositions, KeepsATableThatFits) {
  EXPECT_TRUE(torch::equal(interpolate_positions(wave(3), 3, 3), wave(3)));
  EXPECT_TRUE(torch::equal(interpolate_positions(wave(3), 6, 6).select(1, 0), wave(3).select(1, 0)))
      << "the class token has no place that could be interpolated";
}

TEST(InterpolatePositions, RefusesATableOfNoSquareMap) {
  EXPECT_THROW(interpolate_positions(torch::zeros({1, 11, 2}), 4, 4), c10::ValueError);
  EXPECT_THROW(interpolate_positions(wave(3), 0, 4), c10::ValueError);
  EXPECT_THROW(interpolate_positions(wave(3), 4, 4, /*extra=*/10), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
