// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "models/embedding/patches.h"
#include "models/embedding/positions.h"

namespace abl::models {
namespace {

TEST(Patchify, OrdersPatchesByRowAndTheInsideOfAPatchByRowColumnAndChannel) {
  const std::int64_t C = 3, H = 4, W = 6, p = 2;
  const auto images = torch::arange(2 * C * H * W, torch::kFloat).view({2, C, H, W});
  const auto patches = patchify(images, p);
  ASSERT_EQ(patches.sizes(), (torch::IntArrayRef{2, 6, 12}));
  for (std::int64_t row = 0; row < H; ++row)
    for (std::int64_t column = 0; column < W; ++column)
      for (std::int64_t channel = 0; channel < C; ++channel) {
        const auto token = row / p * (W / p) + column / p;
        const auto place = (row % p * p + column % p) * C + channel;
        ASSERT_EQ(patches[1][token][place].item<float>(), images[1][channel][row][column].item<float>());
      }
}

TEST(Patchify, RefusesImagesThatPatchesDoNotCover) {
  EXPECT_THROW(patchify(torch::zeros({1, 3, 30, 32}), 16), c10::ValueError);
}

TEST(Sincos, IsTheFormulaAtEveryTokenAndChannel) {
  const std::int64_t rows = 3, columns = 5, dim = 16, F = dim / 4;
  const auto table = sincos_2d(rows, columns, dim);
  ASSERT_EQ(table.sizes(), (torch::IntArrayRef{rows * columns, dim}));
  for (std::int64_t y = 0; y < rows; ++y)
    for (std::int64_t x = 0; x < columns; ++x)
      for (std::int64_t i = 0; i < F; ++i) {
        const double omega = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(F - 1));
        const auto token = table[y * columns + x];
        const auto X = static_cast<double>(x), Y = static_cast<double>(y);
        EXPECT_NEAR(token[i].item<double>(), std::sin(X * omega), 1e-6);
        EXPECT_NEAR(token[F + i].item<double>(), std::cos(X * omega), 1e-6);
        EXPECT_NEAR(token[2 * F + i].item<double>(), std::sin(Y * omega), 1e-6);
        EXPECT_NEAR(token[3 * F + i].item<double>(), std::cos(Y * omega), 1e-6);
      }
}

TEST(Sincos, RefusesAWidthThatFourFunctionsDoNotFill) { EXPECT_THROW(sincos_2d(2, 2, 30), c10::ValueError); }

}  // namespace
}  // namespace abl::models
