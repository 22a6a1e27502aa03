// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/pixel_loss.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <string>

#include "tests/models/relative_error.h"

namespace abl::models {
namespace {

struct Result {
  torch::Tensor loss, gradient;
};

template <class Loss>
Result run(Loss loss, const torch::Tensor& logits, const torch::Tensor& labels,
           const PixelLossOptions& options) {
  const auto own = logits.detach().clone().requires_grad_();
  const auto value = loss(own, labels, options);
  (3 * value).backward();
  return {value.detach(), own.grad()};
}

torch::Tensor some_labels(std::int64_t rows, std::int64_t columns, std::int64_t classes) {
  auto labels = torch::randint(0, classes, {2, rows, columns}, torch::kLong);
  labels.narrow(1, 0, 3).fill_(255);
  return labels;
}

void expect_same(const torch::Tensor& logits, const torch::Tensor& labels, const PixelLossOptions& options) {
  const auto once = run(pixel_loss, logits, labels, options);
  const auto exact = run(resized_pixel_loss, logits.to(torch::kDouble), labels, options);
  EXPECT_LT(relative_error(once.loss.to(torch::kDouble), exact.loss), 1e-6);
  EXPECT_LT(relative_error(once.gradient.to(torch::kDouble), exact.gradient), 1e-5);
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(pixel_loss(logits, labels, options).equal(once.loss)) << "without a gradient";
}

TEST(PixelLoss, InOnePassIsThatOfResizedLogits) {
  torch::manual_seed(1);
  for (const std::int64_t classes : {2, 16, 37})
    for (const bool counts_ignored : {false, true})
      for (const bool align_corners : {false, true}) {
        const PixelLossOptions options{.counts_ignored = counts_ignored, .align_corners = align_corners};
        const auto logits = 4 * torch::randn({2, classes, 6, 5});
        expect_same(logits, some_labels(24, 20, classes), options);
        expect_same(logits, some_labels(41, 33, classes), options);
        expect_same(logits, some_labels(6, 5, classes), options);
        expect_same(logits, some_labels(4, 3, classes), options);
      }
}

TEST(PixelLoss, StaysFiniteForLogitsOfAnySize) {
  torch::manual_seed(2);
  const auto logits = 300 * torch::randn({2, 9, 4, 4});
  expect_same(logits, some_labels(16, 16, 9), {});
  expect_same(logits + 1e4, some_labels(16, 16, 9), {});
  const auto broken = logits.clone();
  broken[0][3][2][2] = NAN;
  EXPECT_TRUE(pixel_loss(broken, some_labels(16, 16, 9)).isnan().item<bool>());
}

TEST(PixelLoss, OfWhatSaysNothingIsZero) {
  const auto labels = torch::full({1, 8, 8}, 255, torch::kLong);
  const auto logits = torch::randn({1, 3, 4, 4}).requires_grad_();
  for (const bool counts_ignored : {false, true}) {
    const auto loss = pixel_loss(logits, labels, {.counts_ignored = counts_ignored});
    loss.backward();
    EXPECT_EQ(loss.item<double>(), 0);
    EXPECT_EQ(logits.grad().abs().max().item<double>(), 0);
  }
}

TEST(PixelLoss, OfLogitsInBFloat16IsComputedInFloat32) {
  torch::manual_seed(3);
  const auto logits = torch::randn({2, 5, 4, 4}).to(torch::kBFloat16);
  const auto labels = some_labels(16, 16, 5);
  const auto low = run(pixel_loss, logits, labels, {}),
             high = run(pixel_loss, logits.to(torch::kFloat), labels, {});
  EXPECT_TRUE(low.loss.equal(high.loss));
  EXPECT_EQ(low.gradient.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(low.gradient.equal(high.gradient.to(torch::kBFloat16)));
}

TEST(PixelLoss, DoesNotDependOnTheNumberOfThreads) {
  torch::manual_seed(4);
  const auto logits = torch::randn({2, 19, 16, 16}), labels = some_labels(64, 64, 19);
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = run(pixel_loss, logits, labels, {});
  at::set_num_threads(2);
  const auto together = run(pixel_loss, logits, labels, {});
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.loss.equal(together.loss));
  EXPECT_TRUE(alone.gradient.equal(together.gradient));
}

std::string refusal_of(const torch::Tensor& logits, const torch::Tensor& labels) {
  try {
    pixel_loss(logits, labels);
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "accepted";
}

TEST(PixelLoss, RefusesWhatIsNoLabel) {
  const auto logits = torch::zeros({1, 3, 4, 4});
  auto labels = torch::zeros({1, 8, 8}, torch::kLong);
  labels[0][1][2] = 3;
  EXPECT_EQ(refusal_of(logits, labels),
            "a pixel of label 3; one of the 3 classes, or 255 for none, is expected");
  labels[0][1][2] = -1;
  EXPECT_EQ(refusal_of(logits, labels),
            "a pixel of label -1; one of the 3 classes, or 255 for none, is expected");
  EXPECT_NE(refusal_of(logits, torch::zeros({2, 8, 8}, torch::kLong)), "accepted");
  EXPECT_NE(refusal_of(logits, torch::zeros({1, 8, 8})), "accepted");
}

}  // namespace
}  // namespace abl::models
