// SPDX-License-Identifier: Apache-2.0
#include "models/counting.h"

#include "models/counting/counter.h"
#include "models/registry.h"

namespace abl::models {

Counts count(const SimpleVitOptions& options) {
  const auto whole = count_parts(*build(options, torch::kMeta), options.image_size).front();
  return {.params_all = whole.params_all,
          .params_weights = whole.params_weights,
          .macs = whole.work.macs,
          .flops_msf = static_cast<std::int64_t>(flops_msf(whole.work))};
}

}  // namespace abl::models
