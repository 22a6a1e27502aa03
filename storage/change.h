// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace abl::storage {

/// What changed in a store: a sweep, and the run of it (0: the sweep as such). Without a sweep: the list of
/// workers, or anything.
struct Change {
  std::string sweep;
  std::uint32_t run = 0;
  auto operator<=>(const Change&) const = default;
};

}  // namespace abl::storage
