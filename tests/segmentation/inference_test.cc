// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/inference.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <vector>

namespace abl::models {
namespace {

/// Says of every pixel its own number, and remembers what it was shown.
struct Echo {
  std::vector<std::vector<std::int64_t>> shown{};

  Segment segment() {
    return [this](const torch::Tensor& images) {
      shown.push_back(images.sizes().vec());
      return images.narrow(1, 0, 1).clone();
    };
  }
};

torch::Tensor numbered(std::int64_t rows, std::int64_t columns) {
  return torch::arange(rows * columns, torch::kFloat)
      .view({1, 1, rows, columns})
      .expand({2, 3, rows, columns});
}

TEST(SlidingWindows, CoverAnImageWithTheLastAtItsEdge) {
  Echo echo;
  const auto images = numbered(11, 10);
  const SlidingOptions options{.rows = 4, .columns = 4, .row_stride = 3, .column_stride = 3};
  const auto logits = sliding_logits(echo.segment(), images, options);
  EXPECT_TRUE(torch::allclose(logits, images.narrow(1, 0, 1)));
  EXPECT_EQ(echo.shown.size(), 4 * 3) << "rows from 0, 3, 6, 7; columns from 0, 3, 6";
  for (const auto& shape : echo.shown) EXPECT_EQ(shape, (std::vector<std::int64_t>{2, 3, 4, 4}));
}

TEST(SlidingWindows, AreAveragedWhereTheyOverlap) {
  double window = 0;
  const auto count = [&](const torch::Tensor& images) {
    return torch::full({images.size(0), 1, images.size(2), images.size(3)}, ++window);
  };
  const auto logits = sliding_logits(count, torch::zeros({1, 3, 4, 6}),
                                     {.rows = 4, .columns = 4, .row_stride = 2, .column_stride = 2});
  EXPECT_TRUE(torch::equal(logits[0][0][0], torch::tensor({1., 1., 1.5, 1.5, 2., 2.}, torch::kFloat)));
}

TEST(SlidingWindows, ASmallImageIsOneOfItsOwnSize) {
  Echo echo;
  sliding_logits(echo.segment(), numbered(5, 9),
                 {.rows = 8, .columns = 8, .row_stride = 8, .column_stride = 8});
  ASSERT_EQ(echo.shown.size(), 2);
  EXPECT_EQ(echo.shown[0], (std::vector<std::int64_t>{2, 3, 5, 8}));
}

TEST(SlidingWindows, ThatLeaveGapsAreRefused) {
  Echo echo;
  EXPECT_THROW(sliding_logits(echo.segment(), numbered(9, 9), {.rows = 4, .columns = 4, .row_stride = 5}),
               c10::ValueError);
  EXPECT_THROW(sliding_logits(echo.segment(), numbered(9, 9), {.rows = 4, .columns = 4, .row_stride = 0}),
               c10::ValueError);
}

TEST(WholeImages, AreFilledUpAndTheLogitsCutBack) {
  Echo echo;
  const auto images = numbered(11, 14);
  const auto logits = whole_logits(echo.segment(), images, {.multiple = 8});
  EXPECT_EQ(echo.shown[0], (std::vector<std::int64_t>{2, 3, 16, 16}));
  EXPECT_TRUE(torch::equal(logits, images.narrow(1, 0, 1)));
}

TEST(WholeImages, HaveLogitsOfTheirSize) {
  const auto coarse = [](const torch::Tensor& images) { return torch::avg_pool2d(images, 4); };
  const auto images = torch::randn({1, 3, 16, 24});
  const auto logits = whole_logits(coarse, images);
  EXPECT_TRUE(
      torch::equal(logits, at::upsample_bilinear2d(coarse(images), {16, 24}, /*align_corners=*/false)));
}

}  // namespace
}  // namespace abl::models
