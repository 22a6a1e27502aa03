// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "web/server/net.h"
#include "web/server/readers.h"
#include "web/server/sse.h"

namespace abl::web {

/// What a connection is served from.
struct Site {
  Readers readers;
  Hub hub;
  Outbox outbox = {};
};

/// Serves one connection until the peer closes it, asks to close, or neither sends nor reads anything for 30
/// s: a slow reader of a long answer has all the time it needs. Only GET and HEAD; a request has no body. Who
/// closes its side of the connection has left: what it asked for is not looked for any further.
net::awaitable<void> serve(Stream stream, std::shared_ptr<Site> site);

}  // namespace abl::web
