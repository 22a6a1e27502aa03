// SPDX-License-Identifier: Apache-2.0
#include "models/attention/tiled_attention.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>

// MKL's product of bfloat16 in float32, as <mkl_cblas.h> declares it for 32-bit sizes. PyTorch brings MKL
// along and no header of it; where it is built without MKL the address is null.
namespace abl::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kBlockBytes = 1 << 20;  // of scores: what a core's second-level cache holds
constexpr std::int64_t kFewestRows = 64;
constexpr std::int64_t kKeptTokens = 64;

torch::ScalarType summed_in(const Tensor& x) { return torch::promote_types(x.scalar_type(), torch::kFloat); }

/// The type whose products are the faster ones, if they are added in 32 bits and more.
torch::ScalarType usually_multiplied_in(const Tensor& x) {
  const auto type = x.scalar_type();
  return type == torch::kBFloat16 && multiplies_bfloat16() ? type : summed_in(x);
}

/// How the images of a batch and the queries of an image are cut.
struct Blocks {
  std::int64_t images;  ///< at once, with all heads
  std::int64_t rows;    ///< queries at once: all, or some where those of one image are already too many
};

/// `masks`: the masks follow each other from image to image; a block takes a whole part of their cycle.
Blocks blocks_of(const Tensor& q, std::int64_t masks) {
  const auto H = q.size(1), N = q.size(2);
  const auto bytes = static_cast<std::int64_t>(torch::elementSize(summed_in(q)));
  const auto scores = std::max<std::int64_t>(1, kBlockBytes / bytes / H);  // of each head
  if (N * N > 2 * scores) return {.images = 1, .rows = std::clamp(scores / N, std::min(kFewestRows, N), N)};
  auto images = std::max<std::int64_t>(1, scores / (N * N));
  if (masks > 1)
    for (images = std::min(images, masks); masks % images != 0;) --images;
  return {.images = images, .rows = N};
}

/// Where to stop counting blocks: on the meta device after the first, for all take the same memory and
/// nothing is computed.
std::int64_t end_of(const Tensor& q, std::int64_t all, std::int64_t block) {
  return q.is_meta() ? std::min(all, block) : all;
}

/// Some images of [B, H, N, d] as [images·H, N, d] of a type; a view where it can be one.
Tensor slices(const Tensor& x, std::int64_t first, std::int64_t images, torch::ScalarType type) {
  const auto some = x.narrow(0, first, std::min(images, x.size(0) - first));
  if (type == x.scalar_type()) return some.reshape({-1, x.size(2), x.size(3)});
  return at::empty(some.sizes(), x.options().dtype(type)).copy_(some).view({-1, x.size(2), x.size(3)});
}

/// The reverse way: [images·H, rows, d] to its place.
void put(const Tensor& part, const Tensor& all, std::int64_t first_image, std::int64_t first_row) {
  const auto H = all.size(1), images = part.size(0) / H, rows = part.size(1);
  all.narrow(0, first_image, images)
      .narrow(2, first_row, rows)
      .copy_(part.view({images, H, rows, part.size(2)}));
}

/// [B, H, N, d] that lies in memory as [B, N, H, d], so that heads are joined without a copy.
Tensor empty_heads(const Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options()).transpose(1, 2);
}

/// The terms of the images of a block: [1 or images, H, rows, N].
Tensor some_of(const Tensor& terms, std::int64_t image, std::int64_t images, std::int64_t row,
               std::int64_t rows) {
  const auto W = terms.size(0);
  return (W == 1 ? terms : terms.narrow(0, image % W, images)).narrow(2, row, rows);
}

/// scale · a b, b [S, n, m], to which `added` [S, 1, m] is added where there is one.
Tensor product(const Tensor& a, const Tensor& b, double scale, const Tensor& added = {}) {
  if (added.defined()) return at::baddbmm(added, a, b, /*beta=*/1, scale);
  return at::baddbmm(at::empty({1, 1, 1}, a.options()), a, b, /*beta=*/0, scale);
}

/// The same in 32 bits and more.
Tensor scores_of(const Tensor& a, const Tensor& b, double scale, const Tensor& added = {}) {
  if (summed_in(a) == a.scalar_type()) return product(a, b, scale, added);
  auto scores = wide_product(a, b, scale);
  return added.defined() ? scores.add_(added) : scores;
}

/// Some images of the operands, all their heads.
struct BlockOperands {
  Tensor queries, keys, values;  ///< [S, N, w], [S, N, w], [S, N, d]; S = images·H
  Tensor norms;                  ///< of a Gaussian, [S, 1, N]: what is added to the scores of a key
  double scale;

  BlockOperands(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t image, std::int64_t images,
                double scale, bool is_gaussian, torch::ScalarType multiplied)
      : queries{slices(q, image, images, multiplied)},
        keys{slices(k, image, images, multiplied)},
        values{slices(v, image, images, multiplied)},
        scale{scale} {
    if (!is_gaussian) return;
    const auto wide = summed_in(keys);
    if (keys.scalar_type() != k.scalar_type()) {  // they are copies, of more bits
      const auto origin = keys.mean(1, /*keepdim=*/true);
      queries -= origin, keys -= origin;
    }
    norms = keys.to(wide).square().sum(-1).unsqueeze(1) * (-0.5 * scale);
  }

  /// softmax of some rows, of 32 bits and more: [S, rows, N].
  Tensor weights(std::int64_t row, std::int64_t rows, const Tensor& terms, std::int64_t image) const {
    auto scores = scores_of(queries.narrow(1, row, rows), keys.mT(), scale, norms);
    if (terms.defined()) {
      const auto H = terms.size(1), images = queries.size(0) / H;
      scores.view({images, H, rows, -1}).add_(some_of(terms, image, images, row, rows));
    }
    return at::softmax(scores, -1);
  }

  /// The gradient of the keys from some rows of that of the scores. Of a Gaussian it is the difference of two
  /// sums that grow with the distance from the origin.
  Tensor gradient_of_keys(const Tensor& of_scores, std::int64_t row) const {
    const auto some = queries.narrow(1, row, of_scores.size(1));
    if (!norms.defined()) return product(of_scores.mT(), some, scale);
    const auto sums = of_scores.sum(1, /*keepdim=*/false, summed_in(of_scores)).unsqueeze(-1);
    return scores_of(of_scores.mT(), some, scale).addcmul_(sums, keys.to(sums.scalar_type()), -scale);
  }
};

class BlockAttention : public torch::autograd::Function<BlockAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        double scale, bool is_gaussian, bool is_trained, torch::ScalarType multiplied,
                        const std::optional<Tensor>& maybe_terms) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
    const auto terms = maybe_terms.value_or(Tensor{});
    const auto blocks = blocks_of(q, terms.defined() ? terms.size(0) : 1);
    const auto B = q.size(0), H = q.size(1), N = q.size(2);
    const auto out = empty_heads(v);
    Tensor kept;  // [B, H, N, N]
    if (N <= kKeptTokens && is_trained) kept = at::empty({B, H, N, N}, q.options());
    for (std::int64_t image = 0; image < end_of(q, B, blocks.images); image += blocks.images) {
      const BlockOperands block{q, k, v, image, blocks.images, scale, is_gaussian, multiplied};
      for (std::int64_t row = 0; row < end_of(q, N, blocks.rows); row += blocks.rows) {
        const auto p = block.weights(row, std::min(blocks.rows, N - row), terms, image);
        if (kept.defined()) put(p, kept, image, row);
        put(at::bmm(p.to(block.values.scalar_type()), block.values), out, image, row);
      }
    }
    context->saved_data["scale"] = scale;
    context->saved_data["is_gaussian"] = is_gaussian;
    context->saved_data["multiplied"] = static_cast<std::int64_t>(multiplied);
    context->save_for_backward({q, k, v, terms, kept});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &q = saved[0], &k = saved[1], &v = saved[2], &terms = saved[3], &kept = saved[4];
    const auto scale = context->saved_data["scale"].toDouble();
    const auto is_gaussian = context->saved_data["is_gaussian"].toBool();
    const auto multiplied = static_cast<torch::ScalarType>(context->saved_data["multiplied"].toInt());
    const auto blocks = blocks_of(q, terms.defined() ? terms.size(0) : 1);
    const auto B = q.size(0), H = q.size(1), N = q.size(2);
    const auto of_q = empty_heads(q), of_k = empty_heads(k), of_v = empty_heads(v);
    const auto of_terms = terms.defined() ? at::zeros_like(terms, summed_in(terms)) : Tensor{};
    for (std::int64_t image = 0; image < end_of(q, B, blocks.images); image += blocks.images) {
      const BlockOperands block{q, k, v, image, blocks.images, scale, is_gaussian, multiplied};
      const auto of_out = slices(gradients[0], image, blocks.images, block.values.scalar_type());
      Tensor of_keys, of_values;  // sums over the blocks of rows, in 32 bits where there are several
      const auto add = [&](Tensor& sum, const Tensor& part) {
        if (sum.defined())
          sum.add_(part);
        else
          sum = blocks.rows < N ? part.to(summed_in(part)) : part;
      };
      for (std::int64_t row = 0; row < end_of(q, N, blocks.rows); row += blocks.rows) {
        const auto rows = std::min(blocks.rows, N - row);
        const auto of_rows = of_out.narrow(1, row, rows);
        const auto p = kept.defined() ? slices(kept, image, blocks.images, summed_in(kept))
                                      : block.weights(row, rows, terms, image);  // [S, rows, N]
        const auto of_p = scores_of(of_rows, block.values.mT(), 1);
        const auto of_scores = at::_softmax_backward_data(of_p, p, -1, p.scalar_type());
        if (of_terms.defined()) {
          const auto part = of_scores.view({-1, H, rows, N});
          some_of(of_terms, image, part.size(0), row, rows)
              .add_(terms.size(0) == 1 ? part.sum(0, /*keepdim=*/true, summed_in(terms)) : part);
        }
        const auto rounded = of_scores.to(block.keys.scalar_type());  // as products of this block take it
        put(product(rounded, block.keys, scale), of_q, image, row);
        add(of_keys, block.gradient_of_keys(rounded, row));
        add(of_values, at::bmm(p.to(of_rows.scalar_type()).mT(), of_rows));
      }
      put(of_keys, of_k, image, 0);
      put(of_values, of_v, image, 0);
    }
    return {of_q, of_k, of_v, {}, {}, {}, {}, terms.defined() ? of_terms.to(terms.scalar_type()) : of_terms};
  }
};

}  // namespace

Tensor block_attention(const Operands& operands, const std::optional<Tensor>& terms,
                       std::optional<torch::ScalarType> multiplied) {
  const auto& [q, k, v, scale, kernel] = operands;
  const bool is_gaussian = kernel == Kernel::kGaussian;
  // asked here: within a function of autograd gradients are always off
  const bool is_trained =
      torch::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  return BlockAttention::apply(q, k, v, scale, is_gaussian, is_trained,
                               multiplied.value_or(usually_multiplied_in(q)), terms);
}

}  // namespace abl::models

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
