// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/attention/tiled_attention.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace abl::models {
namespace {

using torch::Tensor;

/// Relative to the sum of the products' magnitudes.
void expect_exact(const Tensor& product, const Tensor& a, const Tensor& b, double scale, const char* what) {
  ASSERT_EQ(product.scalar_type(), torch::kFloat) << what;
  const auto wide_a = a.to(torch::kDouble), wide_b = b.to(torch::kDouble);
  const auto error =
      (product - wide_a.matmul(wide_b) * scale).abs() / (wide_a.abs().matmul(wide_b.abs()) * scale);
  EXPECT_LT(error.max().item<double>(), 1e-6) << what;
}

TEST(WideProduct, IsThatOfDoublePrecisionWhateverLiesWhere) {
  torch::manual_seed(4);
  const auto matrices = [](std::int64_t rows, std::int64_t columns) {
    return (torch::randn({5, rows, columns}) + 10).to(torch::kBFloat16);
  };
  for (const auto& [n, k, m] :
       {std::tuple{196, 64, 197}, {70, 1, 80}, {3, 5, 2}, {1, 64, 1}, {100, 700, 66}}) {
    const auto rows = matrices(n, k), columns = matrices(m, k).mT();  // q kᵀ
    const auto cut = matrices(n, 3 * k).narrow(2, k, k);              // beside others, as out of a projection
    const auto one = matrices(1, k).expand({5, n, k});
    const auto every_second = matrices(n, 2 * k).slice(2, 0, 2 * k, 2);
    for (const auto& a : {rows, matrices(k, n).mT(), cut, one, every_second})
      for (const auto& b : {columns, matrices(k, m)}) {
        expect_exact(wide_product(a, b, 0.125), a, b, 0.125, "as it is chosen");
        if (const auto product = mkl_wide_product(a, b, 0.125); product.defined())
          expect_exact(product, a, b, 0.125, "MKL's");
      }
  }
}

/// Without MKL's product the others above are all that is tested, and attention in bfloat16 is slower.
TEST(WideProduct, OfMklIsFoundOnX86) {
#if defined(__x86_64__)
  if (!at::hasMKL()) GTEST_SKIP() << "this PyTorch is built without MKL: products are taken in float32";
  const auto a = torch::ones({1, 2, 2}, torch::kBFloat16);
  EXPECT_TRUE(mkl_wide_product(a, a, 1).defined()) << "PyTorch's MKL no longer exports its product";
#else
  GTEST_SKIP() << "MKL is for x86: products are taken in float32";
#endif
}

TEST(WideProduct, HasItsShapeWithoutMemory) {
  const auto a = torch::empty({2, 80, 4}, torch::dtype(torch::kBFloat16).device(torch::kMeta));
  const auto product = wide_product(a, a.mT(), 1);
  EXPECT_EQ(product.sizes(), (std::vector<std::int64_t>{2, 80, 80}));
  EXPECT_EQ(product.scalar_type(), torch::kFloat);
}

}  // namespace
}  // namespace abl::models
