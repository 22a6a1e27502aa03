// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>

/// The names that the coroutines of this folder are written in.
namespace abl::web {

namespace net = boost::asio;
namespace beast = boost::beast;

/// One connection; everything of it runs on the network thread.
using Stream = beast::basic_stream<net::ip::tcp, net::any_io_executor>;

}  // namespace abl::web
