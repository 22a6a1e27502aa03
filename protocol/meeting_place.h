// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace abl::protocol {

/// Whether a text can be where the ranks of a run meet, HOST:PORT: one worker's trainer says it, and it
/// becomes an argument of the others'.
bool is_meeting_place(std::string_view text);

}  // namespace abl::protocol
