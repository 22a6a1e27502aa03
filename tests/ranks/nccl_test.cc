// SPDX-License-Identifier: Apache-2.0
// Two GPUs train as one does with the same batch, within what rounding changes: additions in another order,
// convolutions in TF32.
#include <torch/cuda.h>
#include <torch/types.h>

#include "tests/ranks/trial_files.h"

namespace abl::ranks {
namespace {

class NcclTest : public RanksTest {
 protected:
  void SetUp() override {
    if (torch::cuda::device_count() < 2) GTEST_SKIP() << "two GPUs are needed";
  }
};

TEST_F(NcclTest, TwoGpusTrainAsOneDoesWithAFullRecipe) {
  const auto full = trial(small_vit(), full_recipe());
  const std::vector<std::string> cuda{"--device", "cuda"};
  const auto one = run(full, 1, cuda), two = run(full, 2, cuda);
  expect_same(one, two, 1e-3);
  EXPECT_EQ(two.start.at("environment").at("ranks"), 2);
}

TEST_F(NcclTest, SyncBatchNormTakesTheImagesOfBoth) {
  auto recipe = full_recipe();
  recipe["sync_batch_norm"] = true;
  const auto model = trial(small_xcit(), recipe);
  expect_same(run(model, 1, {"--device", "cuda"}), run(model, 2, {"--device", "cuda"}), 1e-2);
}

TEST_F(NcclTest, AStoppedRunOfTwoGpusGoesOnToTheSameBits) {
  const auto full = trial(small_vit(), full_recipe());
  const std::vector<std::string> cuda{"--device", "cuda", "--deterministic"};
  const auto whole = run(full, 2, cuda);
  auto half = cuda;
  half.insert(half.end(), {"--last-step", "7"});
  const auto first = run(full, 2, half);
  ASSERT_EQ(first.end.value("status", ""), "stopped") << first.end;
  auto rest = cuda;
  rest.insert(rest.end(), {"--resume", first.checkpoint, "--resume-sha256", first.sha256});
  const auto second = run(full, 2, rest);
  EXPECT_EQ(second.start.value("resumed_step", 0), 7);
  const auto expected = whole.state(), state = second.state();
  ASSERT_EQ(state.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(torch::equal(state.at(name), tensor)) << name;
}

}  // namespace
}  // namespace abl::ranks
