// SPDX-License-Identifier: Apache-2.0
#include "storage/point_limit.h"

#include <algorithm>
#include <bit>

namespace abl::storage {

std::uint64_t point_stride(std::uint64_t of_run, std::uint64_t of_metric) {
  // the smaller one: a metric that says little is not to pay for those that say much
  const int doublings =
      std::min(std::bit_width(of_run / kWholeRun), std::bit_width(of_metric / kWholeMetric));
  return std::uint64_t{1} << std::min(2 * doublings, 62);
}

}  // namespace abl::storage
