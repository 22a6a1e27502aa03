// SPDX-License-Identifier: Apache-2.0
#include "models/counting/meta_autocast.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torch/types.h>

#include <unordered_map>

namespace abl::models {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

// No device of ours is a PrivateUse1, so its autocast key is free to be the meta device's.
constexpr auto kAutocastKey = c10::DispatchKey::AutocastPrivateUse1;
using Below = c10::impl::ExcludeDispatchKeyGuard;

std::unordered_map<const void*, Tensor>& cast_parameters() {
  thread_local std::unordered_map<const void*, Tensor> casts;
  return casts;
}

thread_local bool keeps_casts = false;

Tensor lowered(const Tensor& x) {
  if (!x.defined() || x.scalar_type() != torch::kFloat) return x;
  // A recomputed block says in its first run that no cast is to be kept; its second, in the backward pass,
  // runs under its autocast, but after the life of a MetaAutocast.
  const bool keeps = keeps_casts && at::autocast::is_autocast_cache_enabled();
  if (!keeps || !x.is_leaf() || !x.requires_grad()) return x.to(torch::kBFloat16);
  auto& cast = cast_parameters()[x.unsafeGetTensorImpl()];
  if (!cast.defined()) cast = x.to(torch::kBFloat16);
  return cast;
}
MaybeTensor lowered(const MaybeTensor& x) { return x ? MaybeTensor{lowered(*x)} : x; }

Tensor linear(const Tensor& x, const Tensor& weight, const MaybeTensor& bias) {
  const Below below{kAutocastKey};
  return at::linear(lowered(x), lowered(weight), lowered(bias));
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  const Below below{kAutocastKey};
  return at::matmul(lowered(a), lowered(b));
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  const Below below{kAutocastKey};
  return at::bmm(lowered(a), lowered(b));
}

Tensor mm(const Tensor& a, const Tensor& b) {
  const Below below{kAutocastKey};
  return at::mm(lowered(a), lowered(b));
}

Tensor addmm(const Tensor& sum, const Tensor& a, const Tensor& b, const at::Scalar& beta,
             const at::Scalar& alpha) {
  const Below below{kAutocastKey};
  return at::addmm(lowered(sum), lowered(a), lowered(b), beta, alpha);
}

Tensor baddbmm(const Tensor& sum, const Tensor& a, const Tensor& b, const at::Scalar& beta,
               const at::Scalar& alpha) {
  const Below below{kAutocastKey};
  return at::baddbmm(lowered(sum), lowered(a), lowered(b), beta, alpha);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const MaybeTensor& bias, at::SymIntArrayRef stride,
              at::SymIntArrayRef padding, at::SymIntArrayRef dilation, c10::SymInt groups) {
  const Below below{kAutocastKey};
  return at::conv2d_symint(lowered(x), lowered(weight), lowered(bias), stride, padding, dilation, groups);
}

Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias,
                       double dropout, bool is_causal, std::optional<double> scale, bool grouped) {
  const Below below{kAutocastKey};
  return at::scaled_dot_product_attention(lowered(q), lowered(k), lowered(v), lowered(bias), dropout,
                                          is_causal, scale, grouped);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, library) {
  library.impl("linear", TORCH_FN(linear));
  library.impl("matmul", TORCH_FN(matmul));
  library.impl("bmm", TORCH_FN(bmm));
  library.impl("mm", TORCH_FN(mm));
  library.impl("addmm", TORCH_FN(addmm));
  library.impl("baddbmm", TORCH_FN(baddbmm));
  library.impl("conv2d", TORCH_FN(conv2d));
  library.impl("scaled_dot_product_attention", TORCH_FN(fused_attention));
}

}  // namespace

MetaAutocast::MetaAutocast(bool enabled) { set(enabled); }

MetaAutocast::~MetaAutocast() {
  set(false);
  cast_parameters().clear();
}

void MetaAutocast::set(bool enabled) {
  keeps_casts = enabled;
  c10::impl::tls_set_dispatch_key_excluded(kAutocastKey, !enabled);  // as PyTorch has it by default
  c10::impl::tls_set_dispatch_key_included(kAutocastKey, enabled);   // no tensor of the meta device brings it
}

}  // namespace abl::models
