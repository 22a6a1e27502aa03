// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace abl {

/// Why a run has failed that says it was stopped, and nobody had asked it to: the worker's word and, where a
/// worker does not know, the scheduler's. `own`: the reason that it gave.
inline std::string unasked_stop(const std::string& own) {
  return "ended as stopped without being asked to stop" + (own.empty() ? "" : ": " + own);
}

}  // namespace abl
