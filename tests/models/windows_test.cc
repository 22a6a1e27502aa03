// SPDX-License-Identifier: Apache-2.0
#include <torch/autograd.h>
#include <torch/utils.h>

#include "models/attention/windows.h"

#include <gtest/gtest.h>

#include "models/attention/tiled_attention.h"
#include "models/attention/window_attention.h"
#include "models/attention/window_cosine_attention.h"
#include "models/weights/state.h"

namespace abl::models {
namespace {

constexpr WindowAttentionOptions kSmall{.dim = 16, .heads = 2, .window = 3};

TEST(Windows, AreJoinedToTheMapTheyWereCutFrom) {
  torch::manual_seed(1);
  for (const auto& grid : {WindowGrid{.rows = 6, .columns = 6, .window = 3},
                           WindowGrid{.rows = 6, .columns = 6, .window = 3, .shift = 1},
                           WindowGrid{.rows = 7, .columns = 7, .window = 3, .shift = 1},
                           WindowGrid{.rows = 4, .columns = 4, .window = 4},
                           WindowGrid{.rows = 7, .columns = 2, .window = 3, .shift = 1}}) {
    const auto map = torch::randn({2, grid.rows, grid.columns, 5});
    const auto windows = cut_windows(map, grid);
    EXPECT_EQ(windows.sizes(), (torch::IntArrayRef{2 * grid.windows(), grid.tokens(), 5}));
    EXPECT_TRUE(torch::equal(join_windows(windows, grid), map)) << "map of " << grid.rows << " rows";
  }
}

TEST(Windows, HoldNeighboursRowByRow) {
  const auto map = torch::arange(16).view({1, 4, 4, 1});
  const auto plain = cut_windows(map, {.rows = 4, .columns = 4, .window = 2}).squeeze(2);
  EXPECT_TRUE(torch::equal(plain[1], torch::tensor({2, 3, 6, 7})));
  const auto shifted = cut_windows(map, {.rows = 4, .columns = 4, .window = 2, .shift = 1}).squeeze(2);
  EXPECT_TRUE(torch::equal(shifted[0], torch::tensor({5, 6, 9, 10})));
  EXPECT_TRUE(torch::equal(shifted[3], torch::tensor({15, 12, 3, 0}))) << "all four corners of the map";
}

TEST(Windows, AreTheMapItselfUnshiftedWhereItIsNoLarger) {
  for (const std::int64_t side : {5, 7}) {
    const auto grid = fit_windows(side, 7, /*shifted=*/true);
    EXPECT_EQ(grid.window, side);
    EXPECT_EQ(grid.shift, 0);
    EXPECT_EQ(grid.windows(), 1);
    EXPECT_FALSE(shift_mask(grid, torch::kCPU).defined());
  }
  EXPECT_EQ(fit_windows(14, 7, true).shift, 3);
  EXPECT_EQ(fit_windows(14, 7, false).shift, 0);
  EXPECT_EQ(fit_windows(15, 7, true).windows(), 9) << "filled up to 21";
}

TEST(Windows, KeepTheirSideOverAMapOfAnotherSize) {
  const auto one = spread_windows(5, 7, 7, /*shifted=*/true);
  EXPECT_EQ(one.windows(), 1);
  EXPECT_EQ(one.shift, 0) << "nothing to shift to";
  const auto many = spread_windows(5, 8, 7, /*shifted=*/true);
  EXPECT_EQ(many.windows(), 2);
  EXPECT_EQ(many.shift, 3);
  EXPECT_EQ(spread_windows(14, 14, 7, true), fit_windows(14, 7, true));
}

/// Of a map of two columns and three windows below each other.
TEST(Windows, AMaskOfARectangularMapParts) {
  const WindowGrid grid{.rows = 6, .columns = 2, .window = 2, .shift = 1};
  const auto mask = shift_mask(grid, torch::kCPU).eq(0);  // [3, 4, 4]: who sees whom
  ASSERT_EQ(mask.sizes(), (torch::IntArrayRef{3, 4, 4}));
  EXPECT_EQ(mask[0].sum().item<std::int64_t>(), 8) << "left and right are opposite edges";
  EXPECT_EQ(mask[2].sum().item<std::int64_t>(), 4) << "and so are top and bottom";
}

TEST(Windows, RelativePositionsAreTheSameForPairsOfTheSameDifference) {
  const auto places = relative_positions(3, torch::kCPU).view({9, 9});
  EXPECT_EQ(places.min().item<std::int64_t>(), 0);
  EXPECT_EQ(places.max().item<std::int64_t>(), 24);
  EXPECT_EQ(std::get<0>(torch::_unique2(places)).numel(), 25);
  EXPECT_EQ(places[0][1].item<std::int64_t>(), places[4][5].item<std::int64_t>()) << "one to the right";
  EXPECT_EQ(places[0][3].item<std::int64_t>(), places[5][8].item<std::int64_t>()) << "one below";
  EXPECT_NE(places[0][1].item<std::int64_t>(), places[1][0].item<std::int64_t>());
}

/// Tokens see each other in a shifted window when they are neighbours on the map, not across its edge.
TEST(Windows, AShiftDoesNotLetOppositeEdgesOfTheMapSeeEachOther) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const WindowGrid grid{.rows = 6, .columns = 6, .window = 3, .shift = 1};
  Part<WindowQkvAttentionImpl> attention{kSmall};
  const auto mask = shift_mask(grid, torch::kCPU);
  ASSERT_EQ(mask.sizes(), (torch::IntArrayRef{4, 9, 9}));
  const auto map = torch::randn({1, 6, 6, 16});
  const auto attend = [&](const torch::Tensor& x, const torch::Tensor& with) {
    return join_windows(attention(cut_windows(x, grid), with), grid);
  };
  auto changed = map.clone();
  changed[0][0][0] = torch::randn({16});
  const auto moved = [&](const torch::Tensor& with) {
    return (attend(changed, with) - attend(map, with)).abs().amax(-1).gt(1e-6)[0];  // [6, 6]
  };
  auto own = torch::zeros({6, 6}, torch::kBool);
  own[0][0] = true;  // the shift by one leaves the corner a region of its own
  EXPECT_TRUE(torch::equal(moved(mask), own));
  EXPECT_EQ(moved({}).sum().item<std::int64_t>(), 9) << "without the mask the other corners see it";
}

TEST(WindowAttention, TreatsEveryWindowAlike) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({6, 9, 16});
  const auto order = torch::tensor({4, 0, 5, 2, 1, 3});
  const auto expect_alike = [&](WindowAttentionImpl& attention) {
    EXPECT_TRUE(torch::allclose(attention.forward(x.index_select(0, order), {}),
                                attention.forward(x, {}).index_select(0, order), 1e-5, 1e-6));
  };
  WindowQkvAttentionImpl qkv{kSmall};
  WindowSharedAttentionImpl mean_shift{kSmall, {Kernel::kGaussian, Probe::kInside, "QKKPW"}};
  WindowCosineAttentionImpl cosine{kSmall};
  expect_alike(qkv);
  expect_alike(mean_shift);
  expect_alike(cosine);
}

TEST(WindowAttention, ThroughFusedAttentionIsTheSameAsInBlocks) {
  torch::manual_seed(6);
  for (const auto kernel : {Kernel::kDot, Kernel::kGaussian})
    for (const std::int64_t W : {1, 3}) {
      const auto heads = [] { return torch::randn({6, 2, 9, 8}, torch::kDouble).requires_grad_(); };
      const auto added = torch::randn({W, 2, 9, 9}, torch::kDouble).requires_grad_();
      const Operands operands{.q = heads(), .k = heads(), .v = heads(), .scale = 0.3, .kernel = kernel};
      const auto fused = fused_in_windows(operands, added);
      const auto blocks = block_attention(operands, added).transpose(1, 2);
      EXPECT_TRUE(torch::allclose(fused, blocks, 1e-10, 1e-12)) << W;
      const auto inputs = {operands.q, operands.k, operands.v, added};
      const auto along = torch::randn(fused.sizes(), torch::kDouble);
      const auto of_fused = torch::autograd::grad({fused}, inputs, {along});
      const auto of_blocks = torch::autograd::grad({blocks}, inputs, {along});
      for (std::size_t i = 0; i < of_fused.size(); ++i)
        EXPECT_TRUE(torch::allclose(of_fused[i], of_blocks[i], 1e-10, 1e-12)) << W << ", input " << i;
    }
}

TEST(WindowAttention, WithSeparateMatricesItIsTheFusedOne) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  WindowQkvAttentionImpl fused{kSmall};
  WindowSharedAttentionImpl separate{kSmall, {}};
  auto state = state_of(fused);
  for (std::int64_t role = 0; role < 3; ++role) {
    const std::string letter{"qkv"[role]};
    state["weight." + letter] = state.at("qkv.weight").chunk(3)[role];
    state["bias." + letter] = state.at("qkv.bias").chunk(3)[role];
  }
  state.erase("qkv.weight"), state.erase("qkv.bias");
  load_state(separate, state);
  const auto x = torch::randn({4, 9, 16});
  const auto mask = torch::randn({2, 9, 9});
  EXPECT_TRUE(torch::allclose(separate.forward(x, mask), fused.forward(x, mask), 1e-5, 1e-6));
}

TEST(WindowAttention, StoresASharedMatrixAndItsBiasOnceAndNoWeightThatIsTied) {
  WindowSharedAttentionImpl tied{kSmall, {Kernel::kGaussian, Probe::kInside, "QKKQQ"}};
  EXPECT_EQ(tied.weight->keys().size(), 2U);
  EXPECT_EQ(tied.bias->keys().size(), 2U);
  EXPECT_EQ(state_of(tied).size(), 6U) << "two matrices, two biases, proj_bias and the table: no index";
}

TEST(WindowAttention, OfVersion2NeverScalesACosineByMoreThanAHundred) {
  torch::manual_seed(5);
  const torch::NoGradGuard no_grad;
  WindowCosineAttentionImpl attention{kSmall};
  const auto x = torch::randn({2, 9, 16});
  auto& scale = *attention.named_parameters().find("logit_scale");
  const auto with = [&](double value) { return scale.fill_(value), attention.forward(x, {}); };
  EXPECT_TRUE(torch::equal(with(10), with(20)));
  EXPECT_FALSE(torch::allclose(with(1), with(10)));
}

TEST(WindowAttention, RefusesOptionsThatDoNotFitTogether) {
  const auto meta = torch::Device{torch::kMeta};
  EXPECT_THROW((WindowQkvAttentionImpl{{.dim = 16, .heads = 3, .window = 3}, meta}), c10::ValueError);
  EXPECT_THROW((WindowQkvAttentionImpl{{.dim = 16, .heads = 0, .window = 3}, meta}), c10::ValueError);
  EXPECT_THROW((WindowCosineAttentionImpl{{.dim = 16, .heads = 2, .window = 0}, meta}), c10::ValueError);
  EXPECT_THROW((WindowSharedAttentionImpl{kSmall, {.share = "QKV"}, meta}), c10::ValueError);
  EXPECT_THROW((WindowSharedAttentionImpl{kSmall, {.groups = 3}, meta}), c10::ValueError);
  EXPECT_THROW((WindowSharedAttentionImpl{kSmall, {.kernel = Kernel::kNone}, meta}), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
