// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/instruments.h"
#include "web/server/actions.h"
#include "web/server/net.h"
#include "web/server/peers.h"
#include "web/server/readers.h"
#include "web/server/server.h"
#include "web/server/sign_in.h"
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
  Crowd crowd;
  Rate rate;
  Streams streams;
  ActionDesk actions;
  std::optional<SignIn> sign_in = {};  ///< where people sign in
  Outbox outbox = {};
  RequestFigures requests = {};
};

/// A connection that has found room in the crowd.
struct Visitor {
  Visitor(std::shared_ptr<Site> of, net::ip::tcp::socket socket, std::shared_ptr<net::ssl::context> tls)
      : site{std::move(of)}, stream{std::move(socket), std::move(tls)}, guest{site->crowd, stream} {}
  const std::shared_ptr<Site> site;  // the others refer to it
  Stream stream;
  Crowd::Guest guest;
};

/// Serves one connection until the peer closes it, asks to close, or neither sends nor reads anything for 30
/// s: a slow reader of a long answer has all the time it needs. Only GET and HEAD, and a request has no body,
/// but to sign in and out, and what is posted to have something done. Who closes its side of the connection
/// has left: what it asked for is not looked for any further.
net::awaitable<void> serve(std::unique_ptr<Visitor> visitor);

}  // namespace abl::web
