// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace abl {

/// A duration as people write it: a whole number and one of s, m, h, d, w ("90s", "10m", "8h", "30d").
/// Returns: nothing for any other text, a negative number, or more than 1000 years.
std::optional<std::chrono::seconds> parse_duration(std::string_view text);

}  // namespace abl
