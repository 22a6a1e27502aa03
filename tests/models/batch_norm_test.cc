// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/backbones/model_options.h"
#include "models/counting/meta_kernels.h"
#include "models/layers/layers.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "accepted";
}

TEST(BatchNorm, RefusesToTrainOnOneValueForEachChannel) {
  BatchNorm2d norm{4};
  const auto one = torch::randn({1, 4, 1, 1});
  EXPECT_THAT(refusal([&] { norm(one); }), testing::HasSubstr("over one value for each channel"));
  EXPECT_THAT(refusal([&] { norm(torch::randn({0, 4, 2, 2})); }), testing::HasSubstr("no values"));
  EXPECT_TRUE(norm->running_var.isfinite().all().item<bool>());
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
  norm(torch::randn({1, 4, 1, 2}));
  norm->eval();
  EXPECT_TRUE(norm(one).isfinite().all().item<bool>());
}

TEST(BatchNorm, RefusesThatOfAllProcessesTogether) {
  BatchNorm2d norm{4};
  const auto one = torch::randn({1, 4, 1, 1});
  norm->sum_over_ranks([](torch::Tensor&) {});
  EXPECT_THAT(refusal([&] { norm(one); }), testing::HasSubstr("of all processes"));
  norm->sum_over_ranks([](torch::Tensor& sums) { sums *= 2; });  // another process with as much
  norm(one);
  EXPECT_TRUE(norm->running_var.isfinite().all().item<bool>());
}

TEST(BatchNorm, IsCountedForOneValueToo) {  // the memory of a step is predicted for one image as well
  use_meta_kernels();
  BatchNorm2d norm{4, torch::kMeta};
  EXPECT_EQ(norm(torch::empty({1, 4, 1, 1}, torch::kMeta)).size(1), 4);
}

TEST(BatchNorm, OfAResNetOnOneSmallImageIsRefused) {
  const auto model = build(small_model("resnet"));
  EXPECT_THROW(model->forward(torch::randn({1, 3, 32, 32})), c10::ValueError);
  for (const auto& buffer : model->buffers()) EXPECT_TRUE(buffer.isfinite().all().item<bool>());
  model->eval();
  EXPECT_TRUE(model->forward(torch::randn({1, 3, 32, 32})).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace abl::models
