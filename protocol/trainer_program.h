// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace abl::protocol {

/// What to say where `find_trainer` finds none.
inline constexpr const char* kNoTrainer =
    "ablate-trainer not found beside this program (built with ABLATE_TORCH=OFF?); set ABLATE_TRAINER";

/// The trainer that a program uses: the one that its flag names, otherwise $ABLATE_TRAINER, otherwise the
/// ablate-trainer beside the running program; empty where there is none. Absolute; what is named need not be
/// there.
std::filesystem::path find_trainer(const std::filesystem::path& flag = {});

/// The trainer takes this program's place: its output, its progress bar and its exit code are the command's.
/// Returns only by throwing: Error{kNotFound} where there is none.
[[noreturn]] void become_trainer(std::vector<std::string> arguments);

}  // namespace abl::protocol
