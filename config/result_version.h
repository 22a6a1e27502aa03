// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::config {

/// Raised when the trainer changes so that the same trial gives other numbers. Part of a trial's identity.
inline constexpr int kResultVersion = 6;

}  // namespace abl::config
