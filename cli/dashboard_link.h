// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/client.h"

namespace abl::cli {

/// The dashboard's URL for whoever reaches its scheduler at `address`. `listens`: where it listens, as the
/// scheduler says. Empty: there is none, or only the scheduler's own machine reaches it.
std::string dashboard_at(const std::string& address, const std::string& listens);

/// Prints where a sweep is shown: "dashboard: http://127.0.0.1:8571/sweeps/msf-sharing"; nothing if
/// there is no dashboard that can be reached from here.
void print_dashboard_link(const Context& context, Client& client, const std::string& sweep);

}  // namespace abl::cli
