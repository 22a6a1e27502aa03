// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "storage/types.h"

namespace abl::storage {

/// What a transaction has touched of the queue. It may name too much (a job that was undone, one thing
/// twice): whoever hears of it reads what is stored.
struct Touched {
  std::vector<TrialId> trials;  ///< their state, their back-off, what they need, or who claims them
  std::vector<SweepId> sweeps;  ///< their state or their place among others
  bool pins = false;            ///< which file a name of weights stands for
  bool empty() const { return trials.empty() && sweeps.empty() && !pins; }
};

}  // namespace abl::storage
