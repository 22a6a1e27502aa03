// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace abl::models {

/// What a part of a model does for one image, in the units that tools and papers add up to "FLOPs".
struct Work {
  std::int64_t macs = 0;        ///< multiply-adds of linear layers, matrix products, convolutions, attention
  std::int64_t layer_norm = 0;  ///< elements that went through a layer normalisation
  std::int64_t batch_norm = 0;  ///< elements that went through a batch normalisation
  std::int64_t relu = 0;        ///< elements that went through a ReLU
  std::int64_t residual = 0;    ///< elements of residual additions
  std::int64_t scaled = 0;      ///< elements multiplied by the temperature d^-1/2 of attention

  Work& operator+=(const Work& other);
  bool operator==(const Work&) const = default;
};

/// As the tool fvcore counts: a multiply-add is one, a layer-normalised element 5, and `batch_norm` for a
/// batch-normalised one (5 in the version of early 2021, 2 in today's).
/// Source: XCiT prints it with 5, the manifold key with 2.
double flops_fvcore(const Work& work, int batch_norm);
/// As the MSF paper prints its transformers: 2 MAC + residual additions + 2 · scaled elements.
double flops_msf(const Work& work);
/// As the MSF paper prints its CNNs: 2 (MAC + 2 batch-normalised elements + ReLU elements).
double flops_cnn(const Work& work);

}  // namespace abl::models
