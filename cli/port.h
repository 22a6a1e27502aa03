// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace abl::cli {

inline constexpr std::uint16_t kDefaultPort = 8571;

/// A free TCP port on the loopback address: the one asked for; where nothing is asked, kDefaultPort or, when
/// that is taken, any. Throws: Error{kUnavailable} when the one asked for is in use, kPermissionDenied when
/// it may not be used.
std::uint16_t choose_port(std::optional<std::uint16_t> asked);

}  // namespace abl::cli
