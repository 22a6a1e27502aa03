// SPDX-License-Identifier: Apache-2.0
// Attention of 16 bits on processors, against double precision on the same operands, and beside what
// PyTorch's fused attention errs there. Keys with an offset are what trained models have: their scores are
// large and close together, so that rounding a score to the operands' type leaves nothing of the softmax.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "models/attention/tiled_attention.h"
#include "tests/models/distance.h"

namespace abl::models {
namespace {

using torch::Tensor;

/// The largest differences from double precision: of the result and the gradients of q, k and v, those
/// relative to the largest gradient.
using Errors = std::array<double, 4>;

struct OffsetDrawn {
  Tensor q, k, v;  // [B, H, N, d]
  double scale;
};

OffsetDrawn draw_with_offset(std::int64_t N, std::int64_t d, double offset, torch::ScalarType type) {
  torch::manual_seed(7);
  const auto one = [&](double at) {
    return (torch::randn({2, N, 3, d}, torch::kDouble) + at).to(type).transpose(1, 2);
  };
  return {one(offset), one(offset), one(0), 1 / std::sqrt(static_cast<double>(d))};
}

Tensor textbook_attention(const Operands& x) {
  auto scores = x.q.matmul(x.k.mT());
  if (x.kernel == Kernel::kGaussian)
    scores = scores - 0.5 * x.k.square().sum(-1).unsqueeze(-2);  // of double precision
  return (scores * x.scale).softmax(-1).matmul(x.v);
}

struct Outcome {
  Tensor result;
  std::vector<Tensor> gradients;
};

template <class Attention>
Outcome outcome_with_offset(const OffsetDrawn& x, Kernel kernel, torch::ScalarType type,
                            Attention attention) {
  const auto leaf = [&](const Tensor& t) { return t.detach().to(type).requires_grad_(); };
  const Operands operands{.q = leaf(x.q), .k = leaf(x.k), .v = leaf(x.v), .scale = x.scale, .kernel = kernel};
  const auto y = attention(operands);
  const auto along =
      torch::linspace(-1, 1, y.numel(), torch::kDouble).view(y.sizes()).cos().to(y.scalar_type());
  return {y.detach(), torch::autograd::grad({y}, {operands.q, operands.k, operands.v}, {along})};
}

Errors errors(const Outcome& got, const Outcome& exact) {
  Errors all{distance(got.result, exact.result)};
  for (std::size_t i = 0; i < 3; ++i)
    all[i + 1] =
        distance(got.gradients[i], exact.gradients[i]) / exact.gradients[i].abs().max().item<double>();
  return all;
}

constexpr std::array kWhat{"result", "gradient of q", "gradient of k", "gradient of v"};

// Tokens: their softmax is kept, computed again, and cut into blocks of rows. The products of 32 bits, and
// those of 16 whose sums are of 32, which processors take that have them: every processor computes both.
class HalfAttention : public testing::TestWithParam<std::tuple<Kernel, std::int64_t, torch::ScalarType>> {};

TEST_P(HalfAttention, InBfloat16IsAsAccurateAsFusedAttention) {
  const auto [kernel, N, multiplied] = GetParam();
  for (const double offset : {0.0, 3.0, 10.0}) {
    const auto x = draw_with_offset(N, 64, offset, torch::kBFloat16);
    const auto exact = outcome_with_offset(x, kernel, torch::kDouble, textbook_attention);
    const auto fused = errors(outcome_with_offset(x, kernel, torch::kBFloat16,
                                                  [](const Operands& o) { return fused_attention(o); }),
                              exact);
    const auto block =
        errors(outcome_with_offset(x, kernel, torch::kBFloat16,
                                   [m = multiplied](const Operands& o) { return block_attention(o, {}, m); }),
               exact);
    for (std::size_t i = 0; i < block.size(); ++i)
      EXPECT_LE(block[i], 2 * fused[i]) << kWhat[i] << ", offset " << offset;
  }
}

TEST_P(HalfAttention, OfFloat16IsFiniteAndCloseFarFromTheOrigin) {
  const auto [kernel, N, multiplied] = GetParam();
  if (multiplied != torch::kFloat) GTEST_SKIP() << "float16 is multiplied in 32 bits everywhere";
  for (const double offset : {0.0, 10.0, 60.0}) {
    const auto x = draw_with_offset(N, 64, offset, torch::kHalf);
    const auto exact = outcome_with_offset(x, kernel, torch::kDouble, textbook_attention);
    const auto block = errors(
        outcome_with_offset(x, kernel, torch::kHalf, [](const Operands& o) { return block_attention(o); }),
        exact);
    EXPECT_LT(block[0], kernel == Kernel::kGaussian ? 2e-3 : 2e-2) << "offset " << offset;
    for (std::size_t i = 1; i < block.size(); ++i)
      EXPECT_LT(block[i], 0.1) << kWhat[i] << ", offset " << offset;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, HalfAttention,
                         testing::Combine(testing::Values(Kernel::kDot, Kernel::kGaussian),
                                          testing::Values(49, 196, 700),
                                          testing::Values(torch::kFloat, torch::kBFloat16)),
                         [](const auto& parameter) {
                           return std::string{std::get<0>(parameter.param) == Kernel::kDot ? "Dot"
                                                                                           : "Gaussian"} +
                                  std::to_string(std::get<1>(parameter.param)) + "In" +
                                  torch::toString(std::get<2>(parameter.param));
                         });

TEST(HalfAttentionWithTerms,
     AddsTermsOf32BitsUnrounded) {  // as of Swin's biases: 16 in SwinV2, beside which 0.06 is lost
  for (const auto multiplied : {torch::kFloat, torch::kBFloat16}) {
    const auto x = draw_with_offset(49, 32, 0, torch::kBFloat16);
    const auto terms = torch::rand({1, 3, 49, 49}) * 16;
    const auto wide = [](const Tensor& t) { return t.to(torch::kDouble); };
    const auto scores = wide(x.q).matmul(wide(x.k).mT()) * x.scale + wide(terms);
    const auto y = block_attention({.q = x.q, .k = x.k, .v = x.v, .scale = x.scale}, terms, multiplied);
    // of values up to 4, rounded with their weights; terms of bfloat16 would cost ten times as much
    EXPECT_LT(distance(y, scores.softmax(-1).matmul(wide(x.v))), 2e-2);
  }
}

}  // namespace
}  // namespace abl::models
