// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "storage/types.h"

namespace abl::views {

/// Seconds until a running trial ends, from its own rate; nothing while the rate or the length is unknown.
std::optional<double> trial_eta(const storage::Pace& pace);

/// Seconds until a sweep's last trial ends: the time that its open trials still take, by the rates seen so
/// far, shared among as many as run now. A trial that is there twice counts once. `others`: open trials
/// beside these, which wait. Nothing when nothing is open, nothing runs, or no rate is known yet.
std::optional<double> sweep_eta(const std::vector<storage::Pace>& paces, std::uint32_t others = 0);

}  // namespace abl::views
