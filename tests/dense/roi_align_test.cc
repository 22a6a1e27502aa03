// SPDX-License-Identifier: Apache-2.0
#include "models/dense/roi_align.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "models/dense/boxes.h"
#include "tests/dense/refused.h"
#include "tests/models/distance.h"

namespace abl::models {
namespace {

using torch::Tensor;

Tensor some_rois(std::int64_t images) {
  const auto corners = torch::rand({12, 2}) * 60, sides = torch::rand({12, 2}) * 50;
  return torch::cat({torch::randint(images, {12, 1}).to(torch::kFloat), corners, corners + sides}, 1);
}

TEST(RoiAlign, OfBfloat16IsSummedInFloat32) {
  torch::manual_seed(1);
  const auto maps = torch::randn({2, 70, 9, 11}).to(torch::kBFloat16), rois = some_rois(2);
  const RoiAlignOptions options{.height = 3, .width = 3};
  const auto lowered = maps.clone().requires_grad_(), exact = maps.to(torch::kFloat).requires_grad_();
  const auto a = roi_align(lowered, rois, 0.125, options), b = roi_align(exact, rois, 0.125, options);
  EXPECT_EQ(a.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(a, b.to(torch::kBFloat16)));
  const auto given = torch::randn({12, 70, 3, 3}).to(torch::kBFloat16);
  a.backward(given);
  b.backward(given.to(torch::kFloat));
  EXPECT_TRUE(torch::equal(lowered.grad(), exact.grad().to(torch::kBFloat16)));
}

TEST(RoiAlign, OfMasksIsThatOfTheirNumbers) {
  torch::manual_seed(2);
  const auto masks = (torch::rand({3, 1, 40, 50}) > 0.5).to(torch::kByte), rois = some_rois(3);
  const RoiAlignOptions options{.height = 4, .width = 4, .samples = 0};
  EXPECT_TRUE(
      torch::equal(roi_align(masks, rois, 1, options), roi_align(masks.to(torch::kFloat), rois, 1, options)));
}

TEST(RoiAlign, GradientsAreTheSameForAnyNumberOfThreads) {
  torch::manual_seed(3);
  const auto maps = torch::randn({2, 130, 8, 8}), rois = some_rois(2).repeat({40, 1});
  const auto given = torch::randn({480, 130, 7, 7});
  const auto gradient = [&](int threads) {
    torch::set_num_threads(threads);
    const auto own = maps.clone().requires_grad_();
    roi_align(own, rois, 0.125, {}).backward(given);
    return own.grad();
  };
  const auto before = torch::get_num_threads();
  const auto one = gradient(1), four = gradient(4);
  torch::set_num_threads(before);
  EXPECT_TRUE(torch::equal(one, four));
}

TEST(RoiAlign, EachRegionOfAPyramidIsOfItsLevel) {
  torch::manual_seed(4);
  const std::vector<std::int64_t> strides{4, 8, 16};
  std::vector<Tensor> levels;
  for (const auto stride : strides) levels.push_back(torch::randn({1, 5, 256 / stride, 256 / stride}));
  const auto boxes = torch::tensor({{0., 0., 20., 30.},
                                    {0., 0., 111., 112.},
                                    {0., 0., 112., 112.},
                                    {0., 0., 223., 224.},
                                    {0., 0., 224., 224.},
                                    {0., 0., 9000., 9000.},
                                    {5., 5., 5., 5.}},
                                   torch::kFloat);
  const auto of = pyramid_levels(boxes, strides);
  EXPECT_TRUE(torch::equal(of, torch::tensor({0, 0, 1, 1, 2, 2, 0})));
  const auto rois = as_rois({boxes});
  const auto pooled = pyramid_roi_align(levels, strides, rois, {});
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    const auto level = static_cast<std::size_t>(of[i].item<std::int64_t>());
    const auto alone = roi_align(levels[level], rois.narrow(0, i, 1), 1. / strides[level], {});
    EXPECT_EQ(distance(pooled[i], alone[0]), 0) << i;
  }
}

TEST(RoiAlign, ABoxOfNoNumbersIsZero) {
  const auto rois = torch::tensor({{0.F, NAN, 0.F, 4.F, 4.F}, {0.F, 0.F, 0.F, INFINITY, 4.F}});
  const auto pooled = roi_align(torch::ones({1, 2, 4, 4}), rois, 1, {.samples = 0});
  EXPECT_EQ(pooled.abs().sum().item<double>(), 0);
}

TEST(RoiAlign, SaysWhatItDoesNotTake) {
  const auto maps = torch::ones({2, 3, 4, 4});
  EXPECT_THAT(refused([&] {
                roi_align(maps[0], torch::zeros({1, 5}), 1, {});
              }),
              testing::StartsWith("maps [3, 4, 4] and rois [1, 5]; [B, C, H, W] and [K, 5] are expected"));
  EXPECT_THAT(refused([&] {
                roi_align(maps, torch::tensor({{2., 0., 0., 1., 1.}}), 1, {});
              }),
              testing::StartsWith("region 0 is of image 2 in a batch of 2"));
  EXPECT_THAT(refused([&] {
                roi_align(maps, torch::zeros({1, 5}), 1, {.height = 0});
              }),
              testing::StartsWith("0 x 7 bins of 2 samples"));
}

}  // namespace
}  // namespace abl::models
