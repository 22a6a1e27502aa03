// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace abl {

/// The name of `names` that was probably meant by `written`: fewest edits (insert, delete, replace, swap of
/// neighbours; a separator counts half), letter case ignored. Empty when more than a part of the letters
/// would have to change.
std::string nearest_name(std::string_view written, const std::vector<std::string>& names, double part = 0.5);

/// "; did you mean 'submit'?" for the nearest of `names`, or nothing when none is near.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& names);

/// "a, b or c": how a message lists what it expects.
std::string any_of(const std::vector<std::string>& names);

}  // namespace abl
