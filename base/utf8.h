// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace abl {

/// Length in bytes of the character in valid UTF-8 that a text begins with (Unicode 15, table 3-7), or 0.
/// `bytes` is not empty.
std::size_t utf8_length(std::string_view bytes);

/// The text with each byte that is no part of valid UTF-8 replaced by U+FFFD: Protobuf's strings take nothing
/// else.
std::string valid_utf8(std::string_view bytes);

}  // namespace abl
