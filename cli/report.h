// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/source.h"

namespace abl::cli {

/// A page of one file that needs nothing else, no network either: a sweep's table with its notes and
/// statistics, the curves of its metrics as pictures, what each row ran, and the sweep's file. What others
/// wrote is text in it, never markup.
std::string report_html(Source& source, const std::string& sweep);

}  // namespace abl::cli
