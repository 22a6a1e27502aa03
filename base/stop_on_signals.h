// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace abl {

/// From now on SIGTERM, SIGINT and, unless it is ignored as under nohup, SIGHUP raise what is returned,
/// instead of ending the program.
const std::atomic<bool>& stop_on_signals();
/// Raises it as those signals do.
/// Thread: any.
void ask_to_stop();

}  // namespace abl
