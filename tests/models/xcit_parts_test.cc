// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "models/attention/token_attention.h"
#include "models/attention/xcit_attention.h"
#include "models/backbones/xcit.h"
#include "models/embedding/positions.h"
#include "models/weights/lowered_weights.h"

namespace abl::models {
namespace {

constexpr std::int64_t kDim = 16, kHeads = 4, kTokens = 9;

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

torch::Tensor tokens() { return torch::randn({2, kTokens, kDim}); }

class CrossCovarianceTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
  CrossCovarianceOptions options_{.dim = kDim, .heads = kHeads};
};

TEST_F(CrossCovarianceTest, OfPermutedTokensIsPermuted) {
  const auto x = tokens(), order = torch::randperm(kTokens);
  auto by_sne = options_;
  by_sne.choice.embedding = EmbeddingChoice{.widths = {12}, .shared = {false, true}};
  for (const auto& options : {options_, by_sne}) {
    CrossCovariance attention{options};
    EXPECT_LT(largest_difference(attention(x.index_select(1, order)), attention(x).index_select(1, order)),
              1e-5);
  }
}

TEST_F(CrossCovarianceTest, MakesEachOutputChannelAConvexCombinationOfTheValues) {
  options_.choice.temperature = 3;
  const CrossCovariance attention{options_};
  const auto mixing =
      attention->mixing(torch::randn({2, kHeads, kTokens, 4}), torch::randn({2, kHeads, kTokens, 4}));
  EXPECT_EQ(mixing.sizes(), (std::vector<std::int64_t>{2, kHeads, 4, 4}));
  EXPECT_GE(mixing.min().item<double>(), 0);
  EXPECT_LT(largest_difference(mixing.sum(-1), torch::ones({2, kHeads, 4})), 1e-6);
}

TEST_F(CrossCovarianceTest, DoesNotHeedTheLengthOfQueriesAndKeysUnlessItIsLeftOut) {
  const auto q = torch::randn({2, kHeads, kTokens, 4}), k = torch::randn({2, kHeads, kTokens, 4});
  const auto change = [&] {
    const CrossCovariance attention{options_};
    return largest_difference(attention->mixing(q, k), attention->mixing(5 * q, 0.1 * k));
  };
  EXPECT_LT(change(), 1e-6);
  options_.choice.l2_norm = false;
  EXPECT_GT(change(), 1e-2);
}

TEST_F(CrossCovarianceTest, InFloat16TakesAsLongQueriesAndKeysAsFloat16Holds) {
  const CrossCovariance attention{options_};
  for (const double deviation : {1.0, 48.0, 4000.0}) {  // of 2304 tokens: an image of 384, patches of 8
    const auto shape = std::vector<std::int64_t>{1, kHeads, 2304, 4};
    const auto q = (torch::randn(shape) * deviation).to(torch::kHalf),
               k = (q.to(torch::kFloat) + torch::randn(shape) * deviation).to(torch::kHalf);
    const auto mixing = attention->mixing(q, k);
    EXPECT_EQ(mixing.scalar_type(), torch::kHalf);
    const auto expected = attention->mixing(q.to(torch::kDouble), k.to(torch::kDouble));
    EXPECT_LT(largest_difference(mixing.to(torch::kDouble), expected), 1e-3) << deviation;
  }
}

TEST_F(CrossCovarianceTest, OfChannelsThatAreZeroMixesEvenlyAndHasFiniteGradients) {
  const CrossCovariance attention{options_};
  const auto zero = torch::zeros({1, kHeads, kTokens, 4}).requires_grad_();
  for (const auto& keys : {torch::randn({1, kHeads, kTokens, 4}), zero}) {
    const auto mixing = attention->mixing(zero, keys);
    EXPECT_LT(largest_difference(mixing, torch::full_like(mixing, 0.25)), 1e-6);
    (mixing * torch::randn_like(mixing)).sum().backward();
    EXPECT_TRUE(torch::isfinite(zero.grad()).all().item<bool>());
  }
}

TEST_F(CrossCovarianceTest, WithoutALearnedTemperatureStaysAtItsStart) {
  const auto q = torch::randn({2, kHeads, kTokens, 4}), k = torch::randn({2, kHeads, kTokens, 4});
  options_.choice.temperature = 2;
  const CrossCovariance learned{options_};
  options_.choice.learned_temperature = false;
  const CrossCovariance fixed{options_};
  EXPECT_EQ(learned->parameters().size(), fixed->parameters().size() + 1);
  EXPECT_TRUE(torch::equal(learned->mixing(q, k), fixed->mixing(q, k)));
}

TEST(TokenAttention, OfPermutedTokensIsPermuted) {
  torch::manual_seed(5);
  TokenAttention attention{QkvOptions{.dim = kDim}, kHeads};
  const auto x = tokens(), order = torch::randperm(kTokens);
  EXPECT_LT(largest_difference(attention(x.index_select(1, order)), attention(x).index_select(1, order)),
            1e-5);
  EXPECT_THROW((TokenAttention{QkvOptions{.dim = kDim}, 3}), c10::ValueError);
}

TEST(ClassAttention, DoesNotSeeTheOrderOfThePatches) {
  torch::manual_seed(5);
  ClassAttention attention{kDim, kHeads};
  const auto x = tokens();
  const auto order = torch::cat({torch::zeros({1}, torch::kLong), torch::randperm(kTokens - 1) + 1});
  const auto y = attention(x);
  EXPECT_LT(largest_difference(attention(x.index_select(1, order)), y), 1e-6);
  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{2, 1, kDim}));
}

// Tokens that share an offset: their scores are large and close together. A reference that rounds them errs
// by more than 0.1.
TEST(ClassAttention, OfHalfPrecisionHasScoresOf32Bits) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    torch::manual_seed(5);
    ClassAttention attention{kDim, kHeads};
    const auto x = (torch::randn({4, 65, kDim}) + 10).to(type);
    {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : attention->parameters()) parameter.copy_(parameter.to(type));
    }
    const auto expected = attention->forward(x.to(torch::kFloat));
    lower_weights(*attention, type);
    const auto y = attention(x).to(torch::kFloat);
    EXPECT_LT(largest_difference(y, expected), 0.02 * expected.abs().max().item<double>())
        << torch::toString(type);
  }
}

TEST(LocalPatchInteraction, ReachesTwoPlacesFarInItsOwnChannel) {
  torch::manual_seed(5);
  LocalPatchInteraction interaction{kDim};
  interaction->eval();
  auto x = torch::randn({1, 7 * 7, kDim});
  const auto before = interaction(x, 7, 7);
  x.index_put_({0, 3 * 7 + 3, 2}, 9.0);  // the middle of the map, channel 2
  const auto changed = (interaction(x, 7, 7) - before).abs().gt(1e-6).view({7, 7, kDim});
  auto expected = torch::zeros({7, 7, kDim}, torch::kBool);
  expected.slice(0, 1, 6).slice(1, 1, 6).select(2, 2).fill_(true);
  EXPECT_TRUE(torch::equal(changed, expected));
}

TEST(FourierPositions, AreSinesAndCosinesOfRowThenColumn) {
  const auto table = fourier_table(3, 5);
  EXPECT_EQ(table.sizes(), (std::vector<std::int64_t>{1, 64, 3, 5}));
  const auto at = [&](std::int64_t channel, std::int64_t row, std::int64_t column) {
    return table.index({0, channel, row, column}).item<double>();
  };
  const double turn = 2 * std::numbers::pi;
  for (std::int64_t i = 0; i < 32; i += 2) {
    const double frequency = std::pow(10000.0, -static_cast<double>(i) / 32);
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t column = 0; column < 5; ++column) {
        const double y = turn * static_cast<double>(row + 1) / 3 * frequency,
                     x = turn * static_cast<double>(column + 1) / 5 * frequency;
        EXPECT_NEAR(at(i, row, column), std::sin(y), 1e-5);
        EXPECT_NEAR(at(i + 1, row, column), std::cos(y), 1e-5);
        EXPECT_NEAR(at(32 + i, row, column), std::sin(x), 1e-5);
        EXPECT_NEAR(at(33 + i, row, column), std::cos(x), 1e-5);
      }
  }
}

}  // namespace
}  // namespace abl::models
