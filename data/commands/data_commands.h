// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/command_line.h"

namespace abl::data {

/// `ablate-trainer data` with its own commands: adds them and their flags to `app`, and returns what it does.
Run declare_data(CLI::App& app);

}  // namespace abl::data
