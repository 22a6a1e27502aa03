// SPDX-License-Identifier: Apache-2.0
#include <torch/autograd.h>
#include <torch/utils.h>

#include "models/projection/qkv_projection.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/models/literal.h"

namespace abl::models {
namespace {

constexpr std::int64_t kDim = 16, kTokens = 9;

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

torch::Tensor tokens() { return torch::randn({2, kTokens, kDim}); }

struct Case {
  const char* name;
  EmbeddingChoice choice;
};

class Embedding : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { torch::manual_seed(7); }

  const EmbeddingChoice& choice() const { return GetParam().choice; }
  Codes codes() { return choice().code_size ? Codes{choice()} : Codes{nullptr}; }
};

TEST_P(Embedding, ComputesWhatIsWrittenWithTheSameGradients) {
  auto codes = this->codes();
  NonLinearQkv embedding{kDim, choice(), codes};
  auto parameters = embedding->parameters();
  if (codes) parameters.push_back(codes->code);
  const auto x = tokens().requires_grad_();
  parameters.push_back(x);

  const auto weight = torch::randn({2, kTokens, 3 * kDim});
  const auto fast = embedding(x);
  const auto gradients = torch::autograd::grad({(fast * weight).sum()}, parameters);
  const Literal literal;
  const auto written = embedding(x);
  const auto expected = torch::autograd::grad({(written * weight).sum()}, parameters);
  EXPECT_EQ(fast.sizes(), weight.sizes());
  EXPECT_LT(largest_difference(fast, written), 1e-5);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_LT(largest_difference(gradients[i], expected[i]), 1e-4) << i;
}

TEST_P(Embedding, MakesQueriesKeysAndValuesThatDiffer) {
  NonLinearQkv embedding{kDim, choice(), codes()};
  const auto roles = embedding(tokens()).chunk(3, -1);
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{0, 2}})
    EXPECT_GT(largest_difference(roles[static_cast<std::size_t>(a)], roles[static_cast<std::size_t>(b)]),
              1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    OfAllKinds, Embedding,
    ::testing::Values(Case{"linear", {.widths = {}, .shared = {false}}},
                      Case{"sne", {.widths = {12}, .shared = {false, false}}},
                      Case{"p_sne", {.widths = {12}, .shared = {false, true}}},
                      Case{"f_sne", {.widths = {12}, .shared = {true, true}, .code_size = 5}},
                      Case{"f_sne_without_bias",
                           {.widths = {12}, .shared = {true, true}, .code_size = 5, .bias = false}},
                      Case{"first_shared", {.widths = {12}, .shared = {true, false}, .code_size = 5}},
                      Case{"sne_without_bias", {.widths = {12}, .shared = {false, false}, .bias = false}},
                      Case{"four_layers", {.widths = {12, 10, 8}, .shared = {false, true, false, true}}}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(Codes, StartWithTheDeviationThatIsAskedFor) {
  torch::manual_seed(3);
  const Codes codes{
      EmbeddingChoice{.widths = {8}, .shared = {true, true}, .code_size = 4000, .code_deviation = 2}};
  EXPECT_EQ(codes->code.sizes(), (std::vector<std::int64_t>{3, 4000}));
  EXPECT_NEAR(codes->code.std().item<double>(), 2, 0.1);
}

}  // namespace
}  // namespace abl::models
