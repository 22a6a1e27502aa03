// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/layers/layers.h"

namespace abl::models {

/// By default the release's arguments.
struct DinoHeadOptions {
  std::int64_t prototypes = 65536;  ///< outputs: what views are told apart by
  std::int64_t hidden = 2048, bottleneck = 256;
  bool has_fixed_norm = true;  ///< the last layer's rows have length 1; otherwise lengths that are learned
};

/// The projection head of DINO: three linear layers with GELU between them, the result at length 1, and a
/// last layer without bias whose rows have a length of their own (weight normalisation).
///   y = ŵ x / ‖x‖,  ŵ = g v / ‖v‖ row by row
/// Parameters, named as in the release: `mlp.0`, `mlp.2`, `mlp.4`, `last_layer.weight_g` [prototypes, 1],
/// `last_layer.weight_v` [prototypes, bottleneck]. Layers of the MLP start normal with deviation 0.02 and
/// biases at 0 (the release cuts the normal at ±2, a hundred deviations), v as PyTorch's linear layers, g at
/// 1. Shape: x [B, in] -> [B, prototypes]. Source: Caron et al., Emerging properties in self-supervised
/// vision transformers (ICCV 2021), section 3.1 and appendix C; facebookresearch/dino, DINOHead.
class DinoHeadImpl : public torch::nn::Module {
 public:
  DinoHeadImpl(std::int64_t in, const DinoHeadOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Linear first_{nullptr}, second_{nullptr}, third_{nullptr};
  torch::Tensor weight_g_, weight_v_;
};
using DinoHead = Part<DinoHeadImpl>;

}  // namespace abl::models
