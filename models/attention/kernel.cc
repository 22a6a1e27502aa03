// SPDX-License-Identifier: Apache-2.0
#include "models/attention/kernel.h"

#include <torch/autograd.h>

#include <cmath>

#include "models/attention/tiled_attention.h"
#include "models/layers/part.h"

namespace abl::models {

namespace {

/// So many columns of one value beside x, which take no memory.
torch::Tensor columns(const torch::Tensor& x, std::int64_t count, double value) {
  auto shape = x.sizes().vec();
  shape.back() = count;
  return torch::full({1}, value, x.options()).expand(shape);
}

/// [k, hi, lo, 0…]. Keeps for the backward pass what fused attention keeps anyway.
class GaussianKey : public torch::autograd::Function<GaussianKey> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& k,
                               std::int64_t width) {
    const auto wide = k.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
    const auto half_norm = k.to(wide).square().sum(-1, /*keepdim=*/true) * -0.5;  // [B, H, N, 1]
    const auto hi = half_norm.to(k.scalar_type());
    const auto lo = (half_norm - hi).to(k.scalar_type());
    const auto key = torch::cat({k, hi, lo, columns(k, width - k.size(-1) - 2, 0.0)}, -1);
    context->saved_data["d"] = k.size(-1);
    context->save_for_backward({key});
    return key;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto d = context->saved_data["d"].toInt();
    const auto k = context->get_saved_variables()[0].narrow(-1, 0, d);
    const auto& of_key = gradients[0];
    // d(hi + lo)/d(half_norm) is 1 and hi carries all of it, so lo stays out
    return {of_key.narrow(-1, 0, d) - of_key.narrow(-1, d, 1) * k, {}};
  }
};

}  // namespace

Operands operands_of(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  TORCH_CHECK_VALUE(kernel != Kernel::kNone, "a layer without attention has no kernel to attend with");
  return {.q = q,
          .k = k,
          .v = v,
          .scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1))),
          .kernel = literal() ? Kernel::kDot : kernel};
}

Operands as_dot_product(const Operands& operands) {
  if (operands.kernel == Kernel::kDot) return operands;
  const auto& q = operands.q;
  const auto d = q.size(-1), width = (d + 2 + 7) / 8 * 8;
  return {.q = torch::cat({q, columns(q, 2, 1.0), columns(q, width - d - 2, 0.0)}, -1),
          .k = GaussianKey::apply(operands.k, width),
          .v = operands.v,
          .scale = operands.scale};
}

void show_attention(const Operands& operands, const std::optional<torch::Tensor>& added) {
  Observer* observer = attention_observer();
  if (!observer) return;
  const auto wide = [](const torch::Tensor& x) {
    return x.to(torch::promote_types(x.scalar_type(), torch::kFloat));
  };
  const auto products = as_dot_product({.q = wide(operands.q),
                                        .k = wide(operands.k),
                                        .v = operands.v,
                                        .scale = operands.scale,
                                        .kernel = operands.kernel});
  auto scores = products.q.matmul(products.k.mT()) * products.scale;  // [B, H, N, N]
  if (added) {
    const auto W = added->size(0), H = scores.size(1), N = scores.size(2);
    scores = (scores.view({-1, W, H, N, N}) + wide(*added)).view({-1, H, N, N});
  }
  observer->attention(scores.softmax(-1));
}

torch::Tensor fused_attention(const Operands& operands, const std::optional<torch::Tensor>& added) {
  const auto [q, k, v, scale, kernel] = as_dot_product(operands);
  const auto width = q.size(-1), d = v.size(-1);
  // equal widths, or PyTorch silently leaves the fused path
  const auto values = width == d ? v : torch::constant_pad_nd(v, {0, width - d});
  return at::scaled_dot_product_attention(q, k, values, added, /*dropout_p=*/0.0, /*is_causal=*/false, scale)
      .narrow(-1, 0, d);
}

torch::Tensor attend(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const auto operands = operands_of(kernel, q, k, v);
  show_attention(operands);
  // on a processor PyTorch's own is faster only where it is made for: products, 32 bits, many tokens
  const bool is_made_for =
      operands.kernel == Kernel::kDot && q.scalar_type() != torch::kBFloat16 && q.size(2) > 64;
  return literal() || q.is_cuda() || is_made_for ? fused_attention(operands) : block_attention(operands);
}

}  // namespace abl::models
