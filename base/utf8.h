// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl {

/// The text with each byte that is no part of valid UTF-8 replaced by U+FFFD: Protobuf's strings take nothing
/// else.
std::string valid_utf8(std::string_view bytes);

}  // namespace abl
