// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/context.h"
#include "sweeps/sweep_spec.h"

namespace abl::cli {

/// An error as people read it: a line on stderr, several where a file has several problems. With --json also
/// as an object on stdout, so that there is always one to parse:
///   {"error": {"code": "INVALID_ARGUMENT", "message": "…", "problems": [{"file": …, "line": …, …}]}}
void report_error(const Context& context, Code code, const std::string& message,
                  const std::vector<sweeps::Problem>& problems = {});

/// The line on stderr alone: with "error:" before it, unless it begins with a place in a file, which stands
/// alone, so that editors find the place.
void say_error(const Context& context, const std::string& text);

}  // namespace abl::cli
