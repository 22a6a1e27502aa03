// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace abl::protocol {

/// The ablate-trainer beside the running program, otherwise $ABLATE_TRAINER; empty when there is none.
std::filesystem::path find_trainer();

/// The trainer takes this program's place: its output, its progress bar and its exit code are the command's.
/// Returns only by throwing: Error{kNotFound} where there is none.
[[noreturn]] void become_trainer(std::vector<std::string> arguments);

}  // namespace abl::protocol
