// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/instruments.h"
#include "web/server/net.h"
#include "web/server/readers.h"
#include "web/server/server.h"
#include "web/server/sse.h"

namespace abl::web {

/// How often each kind of address was asked for, and how long an answer took until it began to leave.
class RequestFigures {
 public:
  RequestFigures();
  void add(std::string_view route, int status, std::chrono::steady_clock::duration time);
  void expose(Exposition& exposition) const;

 private:
  struct Route {
    std::array<Tally, 6> answers;  // by the first digit of their status
    Histogram seconds{kLatencyBounds};
  };
  std::map<std::string, Route, std::less<>> routes_;  // all that there are, before the first request
};

/// What a connection is served from.
struct Site {
  ServerOptions options;
  Readers readers;
  Hub hub;
  Outbox outbox = {};
  RequestFigures requests = {};
};

/// Serves one connection until the peer closes it, asks to close, or neither sends nor reads anything for 30
/// s: a slow reader of a long answer has all the time it needs. Only GET and HEAD; a request has no body. Who
/// closes its side of the connection has left: what it asked for is not looked for any further.
net::awaitable<void> serve(Stream stream, std::shared_ptr<Site> site);

}  // namespace abl::web
