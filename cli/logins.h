// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "access/tls.h"

namespace abl::cli {

/// `$XDG_CONFIG_HOME/ablate/logins.json`, by default in ~/.config: what 'ablate login' keeps, for its owner
/// alone.
std::filesystem::path logins_file();

/// How the scheduler at "host:port" is reached; without TLS where nobody has logged in there.
/// Throws: Error for a file that others may read, or that is none of ours.
access::ClientAccess access_to(const std::string& address);
void keep_login(const std::string& address, const access::ClientAccess& login);

}  // namespace abl::cli
