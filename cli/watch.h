// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/context.h"

namespace abl::cli {

/// Follows a sweep until it is finished: redrawn on a terminal, otherwise a line for each trial that ends and
/// one every few seconds, the table last; with --json one SweepProgress a line. Outlives a restart of the
/// scheduler. Returns: 0 when the sweep completed, 1 when it ended failed or cancelled. `goodbye`: what
/// Ctrl-C says.
int watch(const Context& context, const std::string& sweep,
          const std::string& goodbye = "\nstopped watching; the sweep continues\n");

}  // namespace abl::cli
