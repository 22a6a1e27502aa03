// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/trunk.h"

#include <algorithm>
#include <functional>

namespace abl::models {

void check_layers(const std::vector<std::int64_t>& layers, std::int64_t depth) {
  const bool ascend = std::ranges::adjacent_find(layers, std::greater_equal{}) == layers.end();
  TORCH_CHECK_VALUE(!layers.empty() && ascend && layers.front() >= 1 && layers.back() <= depth,
                    "maps after layers [", layers, "] of ", depth, "; ascending numbers from 1 to ", depth,
                    " are expected");
}

void check_has_head(bool has_head) {
  TORCH_CHECK_VALUE(has_head, "this model has no head: it computes feature maps, not logits");
}

}  // namespace abl::models
