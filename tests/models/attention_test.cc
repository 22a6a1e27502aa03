// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/attention/shared_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "models/weights/state.h"
#include "tests/models/refusal.h"

namespace abl::models {
namespace {

using ::testing::HasSubstr;

AttentionOptions options_of(const AttentionChoice& choice) {
  return {.dim = 24, .heads = 3, .dim_head = 8, .choice = choice};
}

/// Every partition of five roles (52) and of four without PROBE (15), in letters.
std::vector<std::string> all_shares() {
  std::vector<std::string> shares;
  const auto grow = [&shares](auto& self, std::string share, int used) -> void {
    if (share.size() == 5) return shares.push_back(share);
    if (share.size() == 3) self(self, share + '-', used);
    for (int letter = 0; letter <= used; ++letter)
      self(self, share + static_cast<char>('A' + letter), std::max(used, letter + 1));
  };
  grow(grow, "", 0);
  return shares;
}

AttentionChoice choice_of(const std::string& share, Kernel kernel = Kernel::kGaussian) {
  return {.kernel = kernel, .probe = share[3] == '-' ? Probe::kNone : Probe::kInside, .share = share};
}

bool has_free_weight(const std::string& share) {
  return share.substr(0, 4).find(share[4]) == std::string::npos;
}

std::string refusal_of(const AttentionChoice& choice) {
  return refusal<SharedAttentionImpl>(options_of(choice));
}

TEST(SharedAttention, KeepsTheShapeAndReachesEveryParameterForEveryPartitionOfTheRoles) {
  torch::manual_seed(3);
  const auto shares = all_shares();
  ASSERT_EQ(shares.size(), 52U + 15U);
  for (const auto& share : shares)
    for (const auto kernel : {Kernel::kDot, Kernel::kGaussian}) {
      SharedAttention attention{options_of(choice_of(share, kernel))};
      const auto y = attention(torch::randn({2, 5, 24}));
      ASSERT_EQ(y.sizes(), (torch::IntArrayRef{2, 5, 24})) << share;
      y.square().sum().backward();
      for (const auto& parameter : attention->named_parameters())
        EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << share << ' ' << parameter.key();
      const std::set<char> letters{share.begin(), share.end()};
      EXPECT_EQ(attention->mat->size(), letters.size() - letters.count('-')) << share;
    }
}

TEST(SharedAttention, WithOneMatrixForAllRolesEqualsFiveEqualMatrices) {
  torch::manual_seed(4);
  SharedAttention tied{options_of(choice_of("QQQQQ"))}, free{options_of(choice_of("QKVPW"))};
  const torch::NoGradGuard no_grad;
  const auto& matrix = tied->mat->get("Q");
  for (const auto* name : {"Q", "K", "V", "P"}) free->mat->get(name).copy_(matrix);
  free->mat->get("W").copy_(matrix.t());  // stored the other way round
  const auto x = torch::randn({2, 5, 24});
  EXPECT_TRUE(torch::allclose(tied(x), free(x), 1e-5, 1e-6));
}

TEST(SharedAttention, DoesNotDependOnTheOrderOfTheTokens) {
  torch::manual_seed(5);
  const auto x = torch::randn({2, 7, 24});
  const auto order = torch::randperm(7);
  for (const auto* share : {"QKV-W", "QKVPW", "QQVVV"})
    for (const auto kernel : {Kernel::kDot, Kernel::kGaussian}) {
      SharedAttention attention{options_of(choice_of(share, kernel))};
      EXPECT_TRUE(torch::allclose(attention(x.index_select(1, order)), attention(x).index_select(1, order),
                                  1e-4, 1e-5))
          << share;
    }
}

TEST(SharedAttention, ScalesATiedWeightAndNoOther) {
  torch::manual_seed(6);
  const auto x = torch::randn({2, 5, 24});
  for (const std::string share : {"QKKQQ", "QKKKW"}) {
    auto choice = choice_of(share);
    SharedAttention plain{options_of(choice)};
    choice.tied_weight_scale = 0.25;
    SharedAttention scaled{options_of(choice)};
    load_state(*scaled, state_of(*plain));
    EXPECT_TRUE(torch::allclose(scaled(x), plain(x) * (has_free_weight(share) ? 1.0 : 0.25), 1e-5, 1e-6))
        << share;
  }
}

TEST(SharedAttention, AProbeOutsideIsOneDenseMatrixAfterWeight) {
  torch::manual_seed(7);
  const auto choice =
      AttentionChoice{.kernel = Kernel::kGaussian, .probe = Probe::kOutside, .share = "QKVPW", .groups = 2};
  SharedAttention outside{options_of(choice)},
      without{options_of({.kernel = Kernel::kGaussian, .groups = 2})};
  EXPECT_EQ(outside->mat->get("P").sizes(), (torch::IntArrayRef{24, 24}));
  EXPECT_EQ(outside->mat->get("Q").sizes(), (torch::IntArrayRef{24, 12}));
  const torch::NoGradGuard no_grad;
  for (const auto* name : {"Q", "K", "V", "W"}) without->mat->get(name).copy_(outside->mat->get(name));
  const auto x = torch::randn({2, 5, 24});
  const auto probe = torch::linear(outside->norm(x), outside->mat->get("P"));
  EXPECT_TRUE(torch::allclose(outside(x), without(x) - probe, 1e-5, 1e-6));
}

TEST(SharedAttention, StartsGroupedMatricesWithTheFanInOfAGroup) {
  torch::manual_seed(8);
  const AttentionOptions options{.dim = 384, .heads = 6, .dim_head = 64, .choice = {.groups = 4}};
  SharedAttention attention{options};
  const auto largest = [&](const char* name) { return attention->mat->get(name).abs().max().item<double>(); };
  EXPECT_NEAR(largest("Q"), 1 / std::sqrt(384.0 / 4), 1e-3);
  EXPECT_NEAR(largest("W"), 1 / std::sqrt(384.0), 1e-3);
}

TEST(SharedAttention, HeadsNeedNotFillTheWidth) {
  SharedAttention attention{
      AttentionOptions{.dim = 24, .heads = 2, .dim_head = 6, .choice = choice_of("QQVVV")}};
  EXPECT_EQ(attention(torch::randn({2, 5, 24})).sizes(), (torch::IntArrayRef{2, 5, 24}));
}

TEST(SharedAttention, RefusesWhatHasNoMeaningAndSaysWhy) {
  EXPECT_THAT(refusal_of({.probe = Probe::kOutside, .share = "QKVQW"}), HasSubstr("cannot be shared"));
  EXPECT_THAT(refusal_of({.probe = Probe::kOutside, .share = "QKVPP"}), HasSubstr("cannot be shared"));
  EXPECT_THAT(refusal_of({.share = "QKV-Q", .groups = 2}), HasSubstr("cannot be grouped; use 1 group"));
  EXPECT_THAT(refusal_of({.share = "QKV-W", .groups = 5}), HasSubstr("5 groups do not divide the width 24"));
  EXPECT_THAT(refusal_of({.share = "QKV-W", .groups = 0}), HasSubstr("0 groups"));
  EXPECT_THAT(refusal_of({.share = "QKVPW"}), HasSubstr("put '-' in the fourth place"));
  EXPECT_THAT(refusal_of({.probe = Probe::kInside, .share = "QKV-W"}), HasSubstr("a probe is asked for"));
  EXPECT_THAT(refusal_of({.share = "QKVW"}), HasSubstr("share is 'QKVW'; it names the matrices"));
  EXPECT_THAT(refusal_of({.share = "qkv-w"}), HasSubstr("one capital letter each"));
  EXPECT_THAT(refusal_of({.share = "QK--W"}), HasSubstr("one capital letter each"));
  EXPECT_THAT(refusal_of({.kernel = Kernel::kNone}), HasSubstr("leave the attention out"));
}

}  // namespace
}  // namespace abl::models
