// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace abl::web {

/// The names that the coroutines of this folder are written in.
namespace net = boost::asio;
namespace beast = boost::beast;

/// One connection, plain or with TLS; everything of it runs on the network thread.
class Stream {
 public:
  using Tcp = beast::basic_stream<net::ip::tcp, net::any_io_executor>;
  using executor_type = net::any_io_executor;

  /// `tls`: none: plain text.
  Stream(net::ip::tcp::socket socket, std::shared_ptr<net::ssl::context> tls)
      : tcp_{std::move(socket)}, context_{std::move(tls)} {
    beast::error_code gone;
    const auto peer = tcp_.socket().remote_endpoint(gone);
    if (!gone) peer_ = peer.address();
    if (context_) tls_.emplace(tcp_, *context_);
  }

  bool secure() const { return tls_.has_value(); }
  const net::ip::address& peer() const { return peer_; }
  /// Of a secure stream, before anything else. False: the peer speaks something else; what it said is not
  /// read, and what is written goes out in plain text.
  net::awaitable<bool> shake_hands();
  /// Says goodbye, where it is not gone already. Never throws.
  net::awaitable<void> goodbye();

  executor_type get_executor() { return tcp_.get_executor(); }
  net::ip::tcp::socket& socket() { return tcp_.socket(); }
  int descriptor() { return tcp_.socket().native_handle(); }
  template <class Deadline>
  void expires_after(Deadline deadline) {
    tcp_.expires_after(deadline);
  }
  void close() { tcp_.close(); }

  template <class Buffers, class Handler>
  auto async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    return tcp_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  auto async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    return tcp_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  Tcp tcp_;
  std::shared_ptr<net::ssl::context> context_;
  std::optional<beast::ssl_stream<Tcp&>> tls_;
  net::ip::address peer_;
};

}  // namespace abl::web
