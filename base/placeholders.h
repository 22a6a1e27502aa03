// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace abl {

/// Places in an argument of a command that are filled in when a trial starts: `{params.lr}`, `{seed}`,
/// `{run_dir}`, `{data}` and, where it goes on from one, `{checkpoint}`. `{{` stands for one brace; every
/// other brace, and whatever follows a `$`, is itself. Returns: what stands between the braces of each place,
/// in order.
std::vector<std::string> placeholders(std::string_view text);

/// The text with its places filled in and `{{` as one brace. What `value_of` returns is taken as it is: never
/// looked at again for places.
std::string fill_placeholders(std::string_view text,
                              const std::function<std::string(const std::string& name)>& value_of);

/// What stands between other braces, where it might be meant as the name of a place: no quotes but in
/// brackets, nothing but letters and spaces beside.
std::vector<std::string> other_braces(std::string_view text);

/// The names of shell variables in braces, `${lr}`: nothing fills them in.
std::vector<std::string> shell_variables(std::string_view text);

}  // namespace abl
