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
/// Throws: Error{kNotFound} naming those that there are. Returns: the token that was kept.
std::string forget_login(const std::string& address);

/// "https://gpu-head:7071/" -> "gpu-head:7071".
/// Throws: Error{kInvalidArgument} for what is no such address, or would be reached without TLS.
std::string login_address(const std::string& given);

}  // namespace abl::cli
