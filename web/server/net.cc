// SPDX-License-Identifier: Apache-2.0
#include "web/server/net.h"

#include <boost/beast/core/detect_ssl.hpp>

#include <chrono>

namespace abl::web {
namespace {

using namespace std::chrono_literals;

constexpr auto kHandshake = 10s;
constexpr auto kShutdown = 1s;

}  // namespace

net::awaitable<bool> Stream::shake_hands() {
  beast::flat_buffer first;
  tcp_.expires_after(kHandshake);
  if (!co_await beast::async_detect_ssl(tcp_, first, net::use_awaitable)) {
    tls_.reset();
    co_return false;
  }
  co_await tls_->async_handshake(net::ssl::stream_base::server, first.data(), net::use_awaitable);
  co_return true;
}

net::awaitable<void> Stream::goodbye() {
  beast::error_code ignored;
  if (tls_ && tcp_.socket().is_open()) {
    tcp_.expires_after(kShutdown);
    co_await tls_->async_shutdown(net::redirect_error(net::use_awaitable, ignored));
  }
  tcp_.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace abl::web
