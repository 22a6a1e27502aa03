// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "storage/database.h"
#include "sweeps/sweep_spec.h"

namespace abl::scheduler {

/// What a submission did.
struct Submission {
  bool created = false;  ///< false: the sweep was there already, with the same content
  std::uint32_t new_trials = 0, shared_trials = 0;
};

/// Stores a checked sweep with its trials. The same content under the same name changes nothing but the
/// priority, where one is given.
/// Throws: Error{kAlreadyExists} with the difference, a line each, when the name has another content.
Submission store_sweep(storage::Database& db, const sweeps::SweepSpec& spec, std::optional<int> priority,
                       Time now);

}  // namespace abl::scheduler
