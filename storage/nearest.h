// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace abl::storage {

/// The candidate that `wanted` was probably meant to be (fewest insertions, deletions and changes of one
/// character), or empty when none is near: more than a third of its letters would have to change.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace abl::storage
