// SPDX-License-Identifier: Apache-2.0
#include "models/counting/operator_work.h"

#include <ATen/core/ivalue.h>

#include <functional>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "models/counting/convolved_sizes.h"

namespace abl::models {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const at::Tensor& tensor(const Inputs& inputs, std::size_t index) { return inputs[index].toTensor(); }

/// [… n, k] × [… k, m]
Work product(const at::Tensor& a, const at::Tensor& b) { return {.macs = a.numel() * b.size(-1)}; }

/// Source: the textbook formula; groups divide the input channels that each output sees.
Work convolution(const Inputs& inputs) {
  const auto& x = tensor(inputs, 0);
  const auto& weight = tensor(inputs, 1);
  const auto sizes =
      convolved_sizes(x, weight, inputs[3].toIntVector(), inputs[4].toIntVector(), inputs[5].toIntVector());
  const auto places = std::accumulate(sizes.begin(), sizes.end(), x.size(0), std::multiplies<>{});
  return {.macs = places * weight.numel()};
}

/// Scores, then their sum of values.
Work attention(const Inputs& inputs) {
  const auto& q = tensor(inputs, 0);
  const auto keys = tensor(inputs, 1).size(-2);
  return {.macs = q.numel() * keys + q.numel() / q.size(-1) * keys * tensor(inputs, 2).size(-1)};
}

using Rule = Work (*)(const Inputs&);

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all{
      {"aten::mm", [](const Inputs& in) { return product(tensor(in, 0), tensor(in, 1)); }},
      {"aten::bmm", [](const Inputs& in) { return product(tensor(in, 0), tensor(in, 1)); }},
      {"aten::addmm", [](const Inputs& in) { return product(tensor(in, 1), tensor(in, 2)); }},
      {"aten::baddbmm", [](const Inputs& in) { return product(tensor(in, 1), tensor(in, 2)); }},
      {"aten::convolution", convolution},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::native_layer_norm", [](const Inputs& in) { return Work{.layer_norm = tensor(in, 0).numel()}; }},
      {"aten::native_batch_norm", [](const Inputs& in) { return Work{.batch_norm = tensor(in, 0).numel()}; }},
      {"aten::relu", [](const Inputs& in) { return Work{.relu = tensor(in, 0).numel()}; }},
      {"aten::relu_", [](const Inputs& in) { return Work{.relu = tensor(in, 0).numel()}; }},
  };
  return all;
}

}  // namespace

std::optional<Work> operator_work(const at::RecordFunction& call) {
  const auto rule = rules().find(call.name());
  if (rule == rules().end()) return std::nullopt;
  return rule->second(call.inputs());
}

}  // namespace abl::models
