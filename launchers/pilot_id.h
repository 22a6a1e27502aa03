// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl::launchers {

/// The id of a pilot that its launcher names itself: 12 hexadecimal digits, as passes have.
std::string new_pilot_id();
bool is_pilot_id(std::string_view text);

}  // namespace abl::launchers
