// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"

namespace abl::cli {

/// What a shell command writes to a terminal: script(1) runs it in one. `environment`: "NAME=VALUE".
inline std::string on_terminal(const std::string& command, const std::vector<std::string>& environment) {
  std::vector<std::string> argv{"env", "TERM=xterm"};
  argv.insert(argv.end(), environment.begin(), environment.end());
  argv.insert(argv.end(), {"script", "-qec", command, "/dev/null"});
  return run_program(argv, "", std::chrono::seconds{60});
}

/// Why nothing can be shown on a terminal here; empty where it can.
inline std::string lacks_pseudo_terminal() {
  try {
    const std::string said = on_terminal("test -t 1 && echo yes", {});
    return said.find("yes") == std::string::npos ? "script(1) gave no terminal: " + said : "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A test that needs a terminal is skipped where there is none, and says so.
#define ABL_NEEDS_PSEUDO_TERMINAL()                                  \
  if (const std::string why = lacks_pseudo_terminal(); !why.empty()) \
  GTEST_SKIP() << "needs a pseudo-terminal, of which there is none: " << why

}  // namespace abl::cli
