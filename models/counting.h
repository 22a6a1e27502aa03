// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/counting/parameters.h"
#include "models/simple_vit.h"

namespace abl::models {

/// The free columns of a table: what is known before anything is trained. Of one image where it is work.
struct Counts {
  std::int64_t params_all = 0;      ///< every trainable element
  std::int64_t params_weights = 0;  ///< weight matrices alone: what the MSF paper prints
  /// Multiply-adds of the linear layers and of the two products of attention. Each role counts as a product
  /// of its own, as in the papers: sharing saves parameters. What the Gaussian kernel adds (norms) is not
  /// counted.
  std::int64_t macs = 0;
  /// 2 · macs + the elements of residual additions + 2 · the elements of the scaled scores: what the MSF
  /// paper prints.
  std::int64_t flops_msf = 0;
};

/// Counts a model without building it in memory (meta device).
/// Throws: c10::ValueError when the options do not fit together.
Counts count(const SimpleVitOptions& options);

}  // namespace abl::models
