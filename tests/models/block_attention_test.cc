// SPDX-License-Identifier: Apache-2.0
#include <torch/autograd.h>
#include <torch/utils.h>

#include "models/attention/tiled_attention.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/counting/memory.h"
#include "tests/models/distance.h"

namespace abl::models {
namespace {

using torch::Tensor;

struct Drawn {
  Tensor q, k, v;               // [B, H, N, w], [B, H, N, w], [B, H, N, d]
  std::optional<Tensor> terms;  // [W, H, N, N]
  Kernel kernel = Kernel::kDot;

  std::vector<Tensor> trained() const {
    std::vector<Tensor> all{q, k, v};
    if (terms) all.push_back(*terms);
    return all;
  }
};

Drawn draw(std::int64_t B, std::int64_t N, std::int64_t W, torch::ScalarType type) {
  torch::manual_seed(3);
  constexpr std::int64_t kHeads = 2, kWidth = 12, kValueWidth = 8;
  const auto one = [&](torch::IntArrayRef shape) {
    return torch::randn(shape, torch::kDouble).to(type).requires_grad_();
  };
  // heads beside each other in memory, as they come out of a projection
  const auto heads = [&](std::int64_t width) {
    return torch::randn({B, N, kHeads, width}, torch::kDouble).to(type).transpose(1, 2).requires_grad_();
  };
  Drawn x{.q = heads(kWidth), .k = heads(kWidth), .v = heads(kValueWidth), .terms = {}};
  if (W > 0) x.terms = one({W, kHeads, N, N});
  return x;
}

constexpr double kScale = 0.3;

Tensor in_blocks(const Drawn& x) {
  return block_attention({.q = x.q, .k = x.k, .v = x.v, .scale = kScale, .kernel = x.kernel}, x.terms);
}

Tensor written_out(const Drawn& x) {
  auto scores = x.q.matmul(x.k.mT());
  if (x.kernel == Kernel::kGaussian)
    scores = scores - 0.5 * (x.q.square().sum(-1).unsqueeze(-1) + x.k.square().sum(-1).unsqueeze(-2));
  scores = scores * kScale;
  if (x.terms) scores = scores + x.terms->repeat({x.q.size(0) / x.terms->size(0), 1, 1, 1});
  return scores.softmax(-1).matmul(x.v);
}

/// Result and all gradients against those of the same written out, in the largest difference.
double difference(const Drawn& x, const Drawn& reference) {
  const auto y = in_blocks(x), expected = written_out(reference);
  const auto along = torch::linspace(-1, 1, y.numel(), torch::kDouble).view(y.sizes()).sin();
  const auto got = torch::autograd::grad({y}, x.trained(), {along.to(y.scalar_type())});
  const auto wanted = torch::autograd::grad({expected}, reference.trained(), {along});
  double worst = distance(y, expected);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    worst = std::max(worst, distance(got[i], wanted[i]) / (1 + wanted[i].abs().max().item<double>()));
  return worst;
}

Drawn in_double(const Drawn& x) {
  const auto wide = [](const Tensor& t) { return t.detach().to(torch::kDouble).requires_grad_(); };
  return {wide(x.q), wide(x.k), wide(x.v), x.terms ? std::optional{wide(*x.terms)} : std::nullopt, x.kernel};
}

// Few tokens, whose softmax is kept; several images in a block and some left over; images one by one; an
// image cut into blocks of rows, of which the last is smaller.
class BlockAttention : public testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, BlockAttention,
                         testing::Values(std::pair{1, 1}, std::pair{550, 16}, std::pair{8, 64},
                                         std::pair{23, 65}, std::pair{2, 196}, std::pair{2, 700}));

TEST_P(BlockAttention, IsTheSoftmaxWrittenOut) {
  const auto [B, N] = GetParam();
  const auto x = draw(B, N, 0, torch::kDouble);
  EXPECT_LT(difference(x, x), 1e-12);
}

TEST_P(BlockAttention, WeighsKeysByTheirDistance) {
  const auto [B, N] = GetParam();
  for (const auto& [type, bound] :
       {std::pair{torch::kDouble, 1e-12}, {torch::kFloat, 3e-5}, {torch::kBFloat16, 0.06}})
    for (const auto W : {0, 1}) {
      auto x = draw(B, N, W, type);
      x.kernel = Kernel::kGaussian;
      EXPECT_LT(difference(x, in_double(x)), bound) << torch::toString(type) << ", terms " << W;
    }
}

TEST_P(BlockAttention, SharesOutAWholeToTheKeys) {
  const auto [B, N] = GetParam();
  for (const auto kernel : {Kernel::kDot, Kernel::kGaussian})
    for (const auto W : {0, 1}) {
      auto x = draw(B, N, W, torch::kDouble);
      x.kernel = kernel;
      x.v = torch::ones_like(x.v);
      EXPECT_LT(distance(in_blocks(x), x.v), 1e-12) << "terms " << W;
    }
}

TEST_P(BlockAttention, AddsTheSameTermsToEveryImage) {
  const auto [B, N] = GetParam();
  const auto x = draw(B, N, 1, torch::kDouble);
  EXPECT_LT(difference(x, x), 1e-12);
}

TEST_P(BlockAttention, InFloatAndBfloat16IsAsGoodAsTheyAre) {
  const auto [B, N] = GetParam();
  for (const auto& [type, bound] : {std::pair{torch::kFloat, 1e-5}, {torch::kBFloat16, 0.03}}) {
    const auto x = draw(B, N, 0, type);
    EXPECT_LT(difference(x, in_double(x)), bound) << torch::toString(type);
  }
}

TEST(BlockAttentionTerms, GoFromImageToImageInTurn) {
  for (const auto& [B, N, W] : {std::tuple{12, 16, 4}, {1100, 16, 550}, {6, 65, 3}, {4, 700, 2}}) {
    const auto x = draw(B, N, W, torch::kDouble);
    EXPECT_LT(difference(x, x), 1e-12) << B << " images of " << N << " tokens, " << W << " terms";
  }
}

TEST(BlockAttention, JoinsItsHeadsWithoutACopy) {
  const auto x = draw(2, 16, 0, torch::kFloat);
  EXPECT_TRUE(in_blocks(x).transpose(1, 2).is_contiguous());
}

TEST(BlockAttention, KeepsNothingOfTheSizeOfTheScores) {
  for (const auto kernel : {Kernel::kDot, Kernel::kGaussian})
    for (const std::int64_t N : {1024, 4096}) {
      auto x = draw(1, N, 0, torch::kFloat);
      x.kernel = kernel;
      CountingAllocator memory{torch::kCPU};
      const auto y = in_blocks(x);
      EXPECT_EQ(memory.held(), static_cast<std::int64_t>(y.nbytes()));
      torch::autograd::grad({y.sum()}, x.trained());
      const auto linear =
          8 * static_cast<std::int64_t>(x.q.nbytes());  // operands, result and their gradients
      EXPECT_LT(memory.peak(), (7 << 20) + linear)
          << "blocks of 1 MiB; all scores of two heads would be 8 or 128 MiB, N is " << N;
    }
}

TEST(BlockAttention, KeepsTheSoftmaxOfFewTokensWhereItIsTrained) {
  const auto x = draw(1, 64, 0, torch::kFloat);
  CountingAllocator memory{torch::kCPU};
  const auto trained = in_blocks(x);
  const auto scores = std::int64_t{2} * 64 * 64 * 4;
  EXPECT_EQ(memory.held(), static_cast<std::int64_t>(trained.nbytes()) + scores);
  const torch::NoGradGuard no_grad;
  const auto before = memory.held();
  const auto seen = in_blocks(x);
  EXPECT_EQ(memory.held() - before, static_cast<std::int64_t>(seen.nbytes()));
}

TEST(BlockAttention, ComputesInTheTypeOfItsOperandsUnderAutocast) {
  const auto x = draw(2, 65, 0, torch::kFloat);
  const auto plain = in_blocks(x);
  at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
  at::autocast::set_autocast_enabled(torch::kCPU, true);
  const auto lowered = in_blocks(x);
  at::autocast::set_autocast_enabled(torch::kCPU, false);
  EXPECT_TRUE(lowered.equal(plain));
}

}  // namespace
}  // namespace abl::models
