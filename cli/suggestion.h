// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace abl::cli {

/// "; did you mean 'submit'?" for the nearest of `words`, or nothing when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

}  // namespace abl::cli
