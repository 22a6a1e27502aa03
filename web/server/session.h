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
};

/// Serves one connection until the peer closes it, asks to close, or stays silent for 30 s. Only GET and
/// HEAD; a request has no body.
net::awaitable<void> serve(Stream stream, std::shared_ptr<Site> site);

}  // namespace abl::web
