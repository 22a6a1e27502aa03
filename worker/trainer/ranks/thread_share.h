// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace abl::trainer {

/// Threads of each rank, where the ranks of one machine share `threads`: at least one.
inline int thread_share(int threads, int ranks) { return std::max(1, threads / ranks); }

}  // namespace abl::trainer
