// SPDX-License-Identifier: Apache-2.0
#include <torch/autograd.h>
#include <torch/utils.h>

#include "models/attention/kernel.h"

#include <ATen/SDPBackend.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/distance.h"

namespace abl::models {
namespace {

struct Heads {
  torch::Tensor q, k, v;  // [B, H, N, d]
};

/// Tokens as they come out of a projection of normalised features: unit variance, or `spread` times that.
Heads draw(std::int64_t d, torch::ScalarType type, double spread = 1.0) {
  torch::manual_seed(7);
  const auto one = [&](double scale) {
    return (torch::randn({2, 3, 50, d}, torch::kDouble) * scale).to(type);
  };
  return {one(spread), one(spread), one(1.0)};
}

torch::Tensor average(const torch::Tensor& scores, const torch::Tensor& v) {
  return (scores / std::sqrt(static_cast<double>(v.size(-1)))).softmax(-1).matmul(v);
}

torch::Tensor explicit_dot(const Heads& x) { return average(x.q.matmul(x.k.mT()), x.v); }

/// Left side of (iii) in the supplement: distances, squared and summed one by one.
torch::Tensor explicit_gaussian(const Heads& x) {
  return average((x.q.unsqueeze(-2) - x.k.unsqueeze(-3)).square().sum(-1) * -0.5, x.v);
}

Heads in_double(const Heads& x) {
  return {x.q.to(torch::kDouble), x.k.to(torch::kDouble), x.v.to(torch::kDouble)};
}

double largest(const torch::Tensor& x) { return x.abs().max().item<double>(); }

at::SDPBackend path_of(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, double scale) {
  return static_cast<at::SDPBackend>(at::_fused_sdp_choice(q, k, v, {}, 0.0, false, scale));
}

TEST(Kernel, DotIsTheSoftmaxOfEquation1) {
  for (const std::int64_t d : {16, 32, 64}) {
    const auto x = draw(d, torch::kFloat);
    EXPECT_LT(distance(attend(Kernel::kDot, x.q, x.k, x.v), explicit_dot(in_double(x))), 2e-6) << d;
  }
}

TEST(Kernel, GaussianIsTheSoftmaxOfDistances) {
  for (const std::int64_t d : {6, 16, 30, 32, 64}) {
    const auto x = draw(d, torch::kFloat);
    EXPECT_LT(distance(attend(Kernel::kGaussian, x.q, x.k, x.v), explicit_gaussian(in_double(x))), 5e-6) << d;
  }
}

TEST(Kernel, GaussianIsExactInDouble) {
  const auto x = draw(32, torch::kDouble, 2.0);
  EXPECT_LT(distance(attend(Kernel::kGaussian, x.q, x.k, x.v), explicit_gaussian(x)), 1e-12);
}

TEST(Kernel, GaussianAndDotDiffer) {
  const auto x = draw(32, torch::kFloat);
  EXPECT_GT(distance(attend(Kernel::kGaussian, x.q, x.k, x.v), attend(Kernel::kDot, x.q, x.k, x.v)), 0.05);
}

TEST(Kernel, RowsOfTheAttentionSumToOne) {
  const auto x = draw(32, torch::kFloat, 3.0);
  for (const auto kernel : {Kernel::kDot, Kernel::kGaussian})
    EXPECT_LT(distance(attend(kernel, x.q, x.k, torch::ones_like(x.v)), torch::ones_like(x.v)), 1e-5);
}

TEST(Kernel, QueriesAndKeysHaveOneWidthThatIsAMultipleOfEight) {
  for (const auto& [d, width] : {std::pair{64, 72}, {32, 40}, {30, 32}, {6, 8}}) {
    const auto x = draw(d, torch::kFloat);
    const auto fused = as_dot_product(operands_of(Kernel::kGaussian, x.q, x.k, x.v));
    for (const auto& operand : {fused.q, fused.k}) EXPECT_EQ(operand.size(-1), width);
    EXPECT_EQ(fused.v.size(-1), d);
    EXPECT_DOUBLE_EQ(fused.scale, 1.0 / std::sqrt(static_cast<double>(d)));
  }
}

TEST(Kernel, GaussianThroughFusedAttentionIsTheSoftmaxOfDistancesWithItsGradients) {
  for (const bool adds : {false, true}) {
    auto x = draw(30, torch::kDouble);
    for (auto* operand : {&x.q, &x.k, &x.v}) operand->requires_grad_();
    const auto distances = (x.q.unsqueeze(-2) - x.k.unsqueeze(-3)).square().sum(-1);
    const auto terms = torch::randn({1, 3, 50, 50}, torch::kDouble);
    auto scores = distances * (-0.5 / std::sqrt(30.0));
    if (adds) scores = scores + terms;
    const auto expected = scores.softmax(-1).matmul(x.v);
    const auto y = fused_attention(operands_of(Kernel::kGaussian, x.q, x.k, x.v),
                                   adds ? std::optional{terms} : std::nullopt);
    EXPECT_LT(distance(y, expected), 1e-12);
    const auto along = torch::randn_like(y);
    const auto got = torch::autograd::grad({y}, {x.q, x.k, x.v}, {along});
    const auto wanted = torch::autograd::grad({expected}, {x.q, x.k, x.v}, {along});
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_LT(distance(got[i], wanted[i]), 1e-11) << i;
  }
}

TEST(Kernel, GaussianTakesTheFusedPathWhenItIsTrained) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    auto x = draw(64, type);
    for (auto* operand : {&x.q, &x.k, &x.v}) operand->requires_grad_(true);
    auto fused = as_dot_product(operands_of(Kernel::kGaussian, x.q, x.k, x.v));
    fused.v = torch::constant_pad_nd(x.v, {0, 8});  // as fused_attention does
    ASSERT_TRUE(fused.q.requires_grad() && fused.k.requires_grad() && fused.v.requires_grad());
    EXPECT_NE(path_of(fused.q, fused.k, fused.v, fused.scale), at::SDPBackend::math) << torch::toString(type);
    EXPECT_EQ(path_of(fused.q, fused.k, x.v, fused.scale), at::SDPBackend::math)
        << "unequal widths are fused now: VALUE need not be filled up any more";
  }
}

TEST(Kernel, GradientsOfTheGaussianAreThoseOfTheExplicitDistances) {
  const auto gradients = [](auto&& function) {
    auto x = draw(16, torch::kDouble);
    for (auto* operand : {&x.q, &x.k, &x.v}) operand->requires_grad_(true);
    const auto y = function(x);
    const auto along = torch::linspace(-1, 1, y.numel(), torch::kDouble).view(y.sizes()).cos();
    return torch::autograd::grad({y}, {x.q, x.k, x.v}, {along});
  };
  const auto fused = gradients([](const Heads& x) { return attend(Kernel::kGaussian, x.q, x.k, x.v); });
  const auto expected = gradients(explicit_gaussian);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(largest(expected[i]), 1e-3);
    EXPECT_LT(distance(fused[i], expected[i]), 1e-10 * (1 + largest(expected[i]))) << "operand " << i;
  }
}

TEST(Kernel, GradientReachesKeysThatAreAlsoQueriesAndValues) {
  auto shared = draw(16, torch::kDouble).k.requires_grad_(true);
  const auto grad = [&](const torch::Tensor& y) {
    return torch::autograd::grad({y.square().sum()}, {shared})[0];
  };
  EXPECT_LT(distance(grad(attend(Kernel::kGaussian, shared, shared, shared)),
                     grad(explicit_gaussian({shared, shared, shared}))),
            1e-10);
}

// Errors are the largest against double precision on the same bfloat16 operands.

TEST(Kernel, GaussianInBfloat16IsAsAccurateAsTheDotProduct) {
  for (const double spread : {1.0, 1.5, 2.0, 3.0}) {
    const auto x = draw(64, torch::kBFloat16, spread);
    const auto dot = distance(attend(Kernel::kDot, x.q, x.k, x.v), explicit_dot(in_double(x)));
    const auto gaussian = distance(attend(Kernel::kGaussian, x.q, x.k, x.v), explicit_gaussian(in_double(x)));
    EXPECT_LT(gaussian, 2.0 * dot) << "spread " << spread;
  }
}

TEST(Kernel, GaussianInBfloat16WouldBeFarOffWithTheNormInOneChannel) {
  for (const double spread : {2.0, 3.0}) {
    const auto x = draw(64, torch::kBFloat16, spread);
    const auto exact = explicit_gaussian(in_double(x));
    auto fused = as_dot_product(operands_of(Kernel::kGaussian, x.q, x.k, x.v));
    const auto good = fused_attention(fused);
    fused.k.select(-1, x.k.size(-1) + 1).zero_();  // without the rest of the norm
    const auto rounded = fused_attention(fused);
    EXPECT_GT(distance(rounded, exact), 4.0 * distance(good, exact)) << "spread " << spread;
  }
}

TEST(Kernel, GradientsOfTheGaussianInBfloat16AreAsAccurateAsThoseOfTheDotProduct) {
  const auto worst = [](auto&& function, auto&& reference) {
    auto x = draw(64, torch::kBFloat16);
    auto wide = in_double(x);
    const auto along = torch::linspace(-1, 1, x.v.numel()).view(x.v.sizes()).cos();
    const auto gradients = [&](Heads& operands, auto&& f) {
      for (auto* operand : {&operands.q, &operands.k, &operands.v}) operand->requires_grad_(true);
      const auto y = f(operands);
      return torch::autograd::grad({y}, {operands.q, operands.k, operands.v}, {along.to(y.scalar_type())});
    };
    const auto got = gradients(x, function), expected = gradients(wide, reference);
    double error = 0;
    for (std::size_t i = 0; i < 3; ++i)
      error = std::max(error, distance(got[i], expected[i]) / largest(expected[i]));
    return error;
  };
  const auto gaussian =
      worst([](const Heads& x) { return attend(Kernel::kGaussian, x.q, x.k, x.v); }, explicit_gaussian);
  const auto dot = worst([](const Heads& x) { return attend(Kernel::kDot, x.q, x.k, x.v); }, explicit_dot);
  EXPECT_LT(gaussian, 2.0 * dot);
}

TEST(Kernel, NoneIsRefused) {
  const auto x = draw(8, torch::kFloat);
  EXPECT_THROW(attend(Kernel::kNone, x.q, x.k, x.v), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
