// SPDX-License-Identifier: Apache-2.0
#include "config/trial_config.h"

#include <numeric>

namespace abl::config {

int ModelConfig::layers() const {
  const bool in_stages = family == "swin" || family == "swin-v2";
  return in_stages ? std::accumulate(stage_depths.begin(), stage_depths.end(), 0) : depth;
}

}  // namespace abl::config
