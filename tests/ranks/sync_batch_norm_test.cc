// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/layers/sync_batch_norm.h"

#include <gtest/gtest.h>

#include "models/backbones/model_options.h"
#include "models/layers/layers.h"
#include "models/weights/state.h"
#include "tests/models/xcit_of_blocks.h"
#include "tests/ranks/threads_as_ranks.h"

namespace abl::ranks {
namespace {

/// A batch whose channels lie far from 0 and apart, and what comes back for it.
struct Case {
  Case() {
    torch::manual_seed(3);
    x = torch::randn({9, 4, 5, 5}) * 3 + torch::arange(4, torch::kFloat32).view({1, 4, 1, 1}) * 50;
    dy = torch::randn({9, 4, 5, 5});
    weight = torch::randn({4}), bias = torch::randn({4});
  }
  torch::Tensor x, dy, weight, bias;
};

struct Outcome {
  torch::Tensor y, dx, dw, db, running_mean, running_var;
};

Outcome run(models::BatchNorm2dImpl& norm, const Case& given, std::int64_t first, std::int64_t count) {
  {
    const torch::NoGradGuard no_grad;
    norm.weight.copy_(given.weight), norm.bias.copy_(given.bias);
  }
  const auto x = given.x.narrow(0, first, count).clone().requires_grad_();
  const auto y = norm.forward(x);
  (y * given.dy.narrow(0, first, count)).sum().backward();
  return {y.detach(), x.grad(), norm.weight.grad(), norm.bias.grad(), norm.running_mean, norm.running_var};
}

TEST(SyncBatchNormTest, SharesOfABatchAreNormalisedAsTheBatch) {
  const Case given;
  models::BatchNorm2dImpl whole{4};
  const auto expected = run(whole, given, 0, 9);
  as_ranks(2, [&](RankGroup& group) {
    const std::int64_t first = group.first() ? 0 : 4, count = group.first() ? 4 : 5;
    models::BatchNorm2dImpl part{4};
    part.sum_over_ranks([&](torch::Tensor& tensor) { group.sum(tensor); });
    auto got = run(part, given, first, count);
    EXPECT_TRUE(torch::allclose(got.y, expected.y.narrow(0, first, count), 1e-4, 1e-5));
    EXPECT_TRUE(torch::allclose(got.dx, expected.dx.narrow(0, first, count), 1e-4, 1e-5));
    group.sum(got.dw), group.sum(got.db);
    EXPECT_TRUE(torch::allclose(got.dw, expected.dw, 1e-4, 1e-4));
    EXPECT_TRUE(torch::allclose(got.db, expected.db, 1e-4, 1e-4));
    EXPECT_TRUE(torch::allclose(got.running_mean, expected.running_mean));
    EXPECT_TRUE(torch::allclose(got.running_var, expected.running_var));
    EXPECT_EQ(part.num_batches_tracked.item<int>(), 1);
    part.eval();
    whole.eval();
    EXPECT_TRUE(torch::allclose(part.forward(given.x), whole.forward(given.x), 1e-4, 1e-5));
  });
}

TEST(SyncBatchNormTest, EveryNormalisationOfAModelTakesPart) {
  torch::manual_seed(5);
  const auto images = torch::randn({6, 3, 64, 64});
  const models::EmbeddingChoice f_sne{.widths = {32}, .shared = {true, true}, .code_size = 8};
  const auto options = models::xcit_of_blocks({{}, {.embedding = f_sne}, {.l2_norm = false}});
  const auto whole = models::build(options);
  const auto expected = whole->forward(images);
  as_ranks(2, [&](RankGroup& group) {
    const auto model = models::build(options);
    models::load_state(*model, models::state_of(*whole));
    for (const auto& buffer : model->named_buffers()) {
      const torch::NoGradGuard no_grad;
      if (buffer.key().ends_with("running_mean")) buffer.value().zero_();
      if (buffer.key().ends_with("running_var")) buffer.value().fill_(1);
    }
    models::synchronise_batch_norms(*model, [&](torch::Tensor& tensor) { group.sum(tensor); });
    const std::int64_t first = 3 * group.rank();
    EXPECT_TRUE(torch::allclose(model->forward(images.narrow(0, first, 3)), expected.narrow(0, first, 3),
                                1e-3, 1e-4));
    for (const auto& [name, tensor] : models::state_of(*model)) {
      if (!name.ends_with("running_var")) continue;
      EXPECT_TRUE(torch::allclose(tensor, models::state_of(*whole).at(name), 1e-4, 1e-6)) << name;
    }
  });
}

}  // namespace
}  // namespace abl::ranks
