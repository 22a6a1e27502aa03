// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/trial_config.h"

namespace abl::config {

/// The sizes of one attention layer; 0 where they are not known.
struct LayerShape {
  int dim = 0, heads = 0, dim_head = 0;
  bool operator==(const LayerShape&) const = default;
};

/// The different shapes of the layers that are `chosen`. One of unknown sizes where there are no such layers.
std::vector<LayerShape> shapes_of(const ModelConfig& model, const std::vector<bool>& chosen);

}  // namespace abl::config
