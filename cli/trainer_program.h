// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace abl::cli {

/// The trainer takes this program's place: its output, its progress bar and its exit code are the command's.
/// Returns only by throwing: Error{kNotFound} where there is none.
[[noreturn]] void become_trainer(std::vector<std::string> arguments);

}  // namespace abl::cli
