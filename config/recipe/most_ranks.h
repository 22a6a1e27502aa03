// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "config/trial_config.h"

namespace abl::config {

/// How many processes can train a batch of `size` images in `parts` together: each needs an image of every
/// part, and an image stays with that of the opposite place, with which it may be mixed.
std::int64_t most_ranks(std::int64_t size, std::int64_t parts);

/// The images of a step, as far as is known before the data are opened: a subset has as many as it says.
std::int64_t known_batch(const TrialConfig& trial);

}  // namespace abl::config
