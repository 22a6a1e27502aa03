// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace abl::launchers {

/// A text as one word of a POSIX shell, whatever is in it.
/// Throws: Error{kInvalidArgument} for a text with a zero byte, which no word can have.
std::string shell_word(std::string_view text);

/// What a shell reads from its stdin to run a script with these words as `$1`, `$2`, …: no word is in
/// anybody's argv. The script is a function that is called by the last line, so that one whose end did not
/// arrive does nothing.
std::string script_with(std::string_view script, const std::vector<std::string>& words);

}  // namespace abl::launchers
