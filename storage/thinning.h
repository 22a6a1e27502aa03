// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "storage/types.h"

namespace abl::storage {

/// At most `max_points` points for drawing: the first, the last, and the lowest and highest of each stretch
/// between, so that no peak is lost. A NaN counts as higher than everything: it stays visible.
Series thinned(const Series& series, std::uint32_t max_points);

}  // namespace abl::storage
