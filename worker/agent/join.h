// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "access/tls.h"

namespace abl::agent {

struct JoinOptions {
  std::string scheduler, name;
  std::filesystem::path home;        ///< keeps the worker's token
  std::filesystem::path ca;          ///< empty: no TLS; "system"
  std::filesystem::path join_token;  ///< file; empty: it has joined before
  access::TlsFiles own{};            ///< where the scheduler wants a certificate of its clients
  /// Waits before it asks again. Returns: false where the program is to end. None: it asks once.
  std::function<bool(std::chrono::seconds)> wait{};
};

/// How the worker reaches its scheduler: with the token in its home, or with one of its own for which it
/// exchanges its join token now. A join that was cut off is taken up again with the same token; where no
/// scheduler answers, it is asked for a minute.
/// Throws: Error in one line: no token, one that is used, expired or revoked, no TLS, another authority.
access::ClientAccess join_fleet(const JoinOptions& options);

}  // namespace abl::agent
