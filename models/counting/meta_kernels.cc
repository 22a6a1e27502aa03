// SPDX-License-Identifier: Apache-2.0
#include "models/counting/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>

#include <array>
#include <tuple>

#include "models/counting/convolved_sizes.h"

namespace abl::models {
namespace {

using at::IntArrayRef;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

Tensor empty_unless(bool wanted, const Tensor& like) { return wanted ? at::empty_like(like) : Tensor{}; }

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& x, IntArrayRef normalized, const MaybeTensor&,
                                              const MaybeTensor&, double) {
  auto outer = x.sizes().vec();
  for (auto i = outer.size() - normalized.size(); i < outer.size(); ++i) outer[i] = 1;
  const auto statistics = x.options().dtype(torch::kFloat);
  return {at::empty_like(x, at::MemoryFormat::Contiguous), at::empty(outer, statistics),
          at::empty(outer, statistics)};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor&, const Tensor& x, IntArrayRef,
                                                       const Tensor&, const Tensor&,
                                                       const MaybeTensor& weight, const MaybeTensor& bias,
                                                       std::array<bool, 3> wanted) {
  return {empty_unless(wanted[0], x), wanted[1] ? at::empty_like(*weight) : Tensor{},
          wanted[2] ? at::empty_like(*bias) : Tensor{}};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& x, const MaybeTensor&, const MaybeTensor&,
                                              const MaybeTensor&, const MaybeTensor&, bool training, double,
                                              double) {
  const auto saved = at::empty({training ? x.size(1) : 0}, x.options().dtype(torch::kFloat));
  return {at::empty_like(x), saved, at::empty_like(saved)};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor&, const Tensor& x,
                                                       const MaybeTensor& weight, const MaybeTensor&,
                                                       const MaybeTensor&, const MaybeTensor&,
                                                       const MaybeTensor&, bool, double,
                                                       std::array<bool, 3> wanted) {
  return {empty_unless(wanted[0], x), wanted[1] ? at::empty_like(*weight) : Tensor{},
          wanted[2] ? at::empty_like(*weight) : Tensor{}};
}

Tensor convolution(const Tensor& x, const Tensor& weight, const MaybeTensor&, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   std::int64_t groups) {
  auto shape = transposed ? enlarged_sizes(x, weight, stride, padding, dilation, output_padding)
                          : convolved_sizes(x, weight, stride, padding, dilation);
  shape.insert(shape.begin(), {x.size(0), transposed ? weight.size(1) * groups : weight.size(0)});
  return at::empty(shape, x.options(), x.suggest_memory_format());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& x,
                                                        const Tensor& weight, at::OptionalIntArrayRef,
                                                        IntArrayRef, IntArrayRef, IntArrayRef, bool,
                                                        IntArrayRef, std::int64_t,
                                                        std::array<bool, 3> wanted) {
  return {empty_unless(wanted[0], x), empty_unless(wanted[1], weight),
          wanted[2] ? at::empty({grad.size(1)}, grad.options()) : Tensor{}};
}

Tensor mean_over_grid(const Tensor& x, IntArrayRef size) {
  return at::empty({x.size(0), x.size(1), size[0], size[1]}, x.options(), x.suggest_memory_format());
}
Tensor mean_over_grid_backward(const Tensor&, const Tensor& x) { return at::empty_like(x); }

Tensor relu(const Tensor& x) { return at::empty_like(x); }
Tensor& relu_in_place(Tensor& x) { return x; }

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  const auto shape = at::infer_size(at::infer_size(condition.sizes(), yes.sizes()), no.sizes());
  return at::empty(shape, yes.options().dtype(at::result_type(yes, no)).device(torch::kMeta));
}

Tensor& where_out(const Tensor& condition, const Tensor& yes, const Tensor& no, Tensor& out) {
  out.resize_(at::infer_size(at::infer_size(condition.sizes(), yes.sizes()), no.sizes()));
  return out;
}

Tensor roll(const Tensor& x, IntArrayRef, IntArrayRef) {
  return at::empty_like(x, at::MemoryFormat::Contiguous);
}

/// Fused attention keeps its operands, its result and one number for each query.
class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v) {
    // [B, H, N, d], in memory [B, N, H, d]
    const auto out = at::empty({q.size(0), q.size(2), q.size(1), v.size(3)}, q.options()).transpose(1, 2);
    const auto sums = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(torch::kFloat));
    context->save_for_backward({q, k, v, out, sums});
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list&) {
    const auto saved = context->get_saved_variables();
    return {at::empty_like(saved[0]), at::empty_like(saved[1]), at::empty_like(saved[2])};
  }
};

/// As the CPU chooses: fused, but for a bias that wants a gradient.
Tensor dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& bias,
                             double dropout, bool is_causal, std::optional<double> scale, bool) {
  if (at::GradMode::is_enabled() && bias && bias->defined() && bias->requires_grad())
    return std::get<0>(
        at::_scaled_dot_product_attention_math(q, k, v, bias, dropout, is_causal, std::nullopt, scale));
  return FusedAttention::apply(q, k, v);
}

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  auto sizes = x.sizes().vec();
  sizes[static_cast<std::size_t>(dim < 0 ? dim + x.dim() : dim)] = index.numel();
  return at::empty(sizes, x.options());
}

/// The weight and the lengths of its rows.
std::tuple<Tensor, Tensor> weight_norm(const Tensor& v, const Tensor& g, std::int64_t) {
  return {at::empty_like(v), at::empty_like(g, torch::kFloat)};
}
std::tuple<Tensor, Tensor> weight_norm_backward(const Tensor&, const Tensor& v, const Tensor& g,
                                                const Tensor&, std::int64_t) {
  return {at::empty_like(v), at::empty_like(g)};
}

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("native_layer_norm", TORCH_FN(layer_norm));
  library.impl("native_layer_norm_backward", TORCH_FN(layer_norm_backward));
  library.impl("native_batch_norm", TORCH_FN(batch_norm));
  library.impl("native_batch_norm_backward", TORCH_FN(batch_norm_backward));
  library.impl("convolution", TORCH_FN(convolution));
  library.impl("convolution_backward", TORCH_FN(convolution_backward));
  library.impl("_adaptive_avg_pool2d", TORCH_FN(mean_over_grid));
  library.impl("_adaptive_avg_pool2d_backward", TORCH_FN(mean_over_grid_backward));
  library.impl("relu", TORCH_FN(relu));
  library.impl("relu_", TORCH_FN(relu_in_place));
  library.impl("where.self", TORCH_FN(where));
  library.impl("where.self_out", TORCH_FN(where_out));
  library.impl("roll", TORCH_FN(roll));
  library.impl("index_select", TORCH_FN(index_select));
  library.impl("_weight_norm_interface", TORCH_FN(weight_norm));
  library.impl("_weight_norm_interface_backward", TORCH_FN(weight_norm_backward));
}

TORCH_LIBRARY_IMPL(aten, AutogradMeta, library) {
  library.impl("scaled_dot_product_attention", TORCH_FN(dot_product_attention));
}

}  // namespace

void use_meta_kernels() {}  // the registrations above come with it

}  // namespace abl::models
