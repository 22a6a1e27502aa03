// SPDX-License-Identifier: Apache-2.0
#include "models/attention/wide_product.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

// MKL's product of bfloat16 in float32, as <mkl_cblas.h> declares it for 32-bit sizes. PyTorch brings MKL
// along and no header of it; where it is built without MKL the address is null.
extern "C" __attribute__((weak)) void cblas_gemm_bf16bf16f32(int layout, int transpose_a, int transpose_b,
                                                             int m, int n, int k, float alpha,
                                                             const std::uint16_t* a, int lda,
                                                             const std::uint16_t* b, int ldb, float beta,
                                                             float* c, int ldc);

namespace abl::models {
namespace {

using torch::Tensor;

constexpr int kRowMajor = 101, kAsItIs = 111, kTransposed = 112;
constexpr std::int64_t kFewRows = 64;  // of fewer a call costs more than its product: batched float32 then

/// A batch of matrices in the order that MKL reads: rows or columns one after another.
struct Matrices {
  explicit Matrices(const Tensor& x) : all{x.stride(2) == 1 || x.stride(1) == 1 ? x : x.contiguous()} {
    // a stride below the width (of a single row, or an expanded tensor) is none that MKL takes
    const bool rows = all.stride(2) == 1 && all.stride(1) >= all.size(2);
    const bool columns = all.stride(1) == 1 && all.stride(2) >= all.size(1);
    if (!rows && !columns) all = all.clone(torch::MemoryFormat::Contiguous);
    order = rows || !columns ? kAsItIs : kTransposed;
    apart = static_cast<int>(order == kAsItIs ? all.stride(1) : all.stride(2));
  }
  const std::uint16_t* operator[](std::int64_t i) const {
    return static_cast<const std::uint16_t*>(all.const_data_ptr()) + i * all.stride(0);
  }

  Tensor all;
  int order = kAsItIs, apart = 0;
};

}  // namespace

bool multiplies_bfloat16() {
#if defined(__x86_64__)
  static const bool has_them = __builtin_cpu_supports("avx512bf16");
  return has_them;
#else
  return false;
#endif
}

Tensor mkl_wide_product(const Tensor& a, const Tensor& b, double scale) {
  if (!cblas_gemm_bf16bf16f32) return {};
  TORCH_INTERNAL_ASSERT(a.scalar_type() == torch::kBFloat16 && b.scalar_type() == torch::kBFloat16);
  const auto S = a.size(0);
  const auto n = static_cast<int>(a.size(1)), k = static_cast<int>(a.size(2)),
             m = static_cast<int>(b.size(2));
  const auto out = at::empty({S, n, m}, a.options().dtype(torch::kFloat));
  const Matrices left{a}, right{b};
  auto* const values = out.mutable_data_ptr<float>();
  at::parallel_for(0, S, /*grain_size=*/1, [&](std::int64_t first, std::int64_t end) {
    for (auto i = first; i < end; ++i)
      cblas_gemm_bf16bf16f32(kRowMajor, left.order, right.order, n, m, k, static_cast<float>(scale), left[i],
                             left.apart, right[i], right.apart, /*beta=*/0, values + i * n * m, m);
  });
  return out;
}

Tensor wide_product(const Tensor& a, const Tensor& b, double scale) {
  if (a.is_meta()) return at::empty({a.size(0), a.size(1), b.size(2)}, a.options().dtype(torch::kFloat));
  if (std::min(a.size(1), b.size(2)) > kFewRows)
    if (auto product = mkl_wide_product(a, b, scale); product.defined()) return product;
  const auto none = at::empty({1, 1, 1}, a.options().dtype(torch::kFloat));
  return at::baddbmm(none, a.to(torch::kFloat), b.to(torch::kFloat), /*beta=*/0, scale);
}

}  // namespace abl::models
