// SPDX-License-Identifier: Apache-2.0
#include "models/attention/charts.h"

namespace abl::models {

ChartExpansionImpl::ChartExpansionImpl(std::int64_t dim, std::int64_t charts, torch::Device device) {
  weight_ = register_parameter("weight", new_weight({charts * dim, dim}, device));
}

torch::Tensor ChartExpansionImpl::forward(const torch::Tensor& x, const torch::Tensor& gamma) {
  const auto M = x.size(0), D = x.size(1), H = weight_.size(0) / D;
  const auto scaled = (gamma.unsqueeze(1) * weight_).view({H, D, D});
  return x.expand({H, M, D}).bmm(scaled.mT());
}

TokenMixingImpl::TokenMixingImpl(std::int64_t tokens, std::int64_t charts, ChartMixing mixing,
                                 torch::Device device)
    : tokens_{tokens}, charts_{charts}, mixing_{mixing} {
  const auto N = tokens, all = charts * tokens;
  weight_ = register_parameter("weight", mixing == ChartMixing::kDense ? new_weight({N, all, 1}, device)
                                                                       : new_weight({all, N, 1}, device));
}

torch::Tensor TokenMixingImpl::forward(const torch::Tensor& charts) {
  const auto H = charts_, N = tokens_;
  if (mixing_ == ChartMixing::kSeparate) return weight_.view({H, N, N}).bmm(charts);
  const auto joined = mixing_ == ChartMixing::kDense
                          ? weight_.view({N, H * N})
                          : weight_.view({H, N, N}).transpose(0, 1).reshape({N, H * N}) / H;
  return joined.mm(charts.flatten(0, 1)).unsqueeze(0);
}

}  // namespace abl::models
