// SPDX-License-Identifier: Apache-2.0
#include "web/server/server.h"

#include <fmt/format.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <list>
#include <thread>

#include "access/listen_address.h"
#include "base/error.h"
#include "base/log.h"
#include "web/server/session.h"

namespace abl::web {
namespace {

using namespace std::chrono_literals;
using net::ip::tcp;

constexpr auto kLookEvery = 500ms;    // PRAGMA data_version, when nobody publishes
constexpr auto kGoodbye = 2s;         // for what is being answered when the server stops
constexpr auto kAcceptRetry = 200ms;  // after a failed accept, e.g. no file descriptor left

/// Of so many connections.
std::size_t room_for_streams(std::size_t connections) { return connections - connections / 4; }

/// For those who connect from now on.
std::shared_ptr<net::ssl::context> context_of(const access::ServerPem& pem) {
  auto context = std::make_shared<net::ssl::context>(net::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  context->use_certificate_chain(net::buffer(pem.certificate));
  context->use_private_key(net::buffer(pem.key), net::ssl::context::pem);
  return context;
}

tcp::acceptor listen_on(net::io_context& network, const ServerOptions& options) {
  const std::string& address = options.address;
  const std::uint16_t port = options.port;
  if (!access::is_loopback(address) && !(options.certificate && options.doorkeeper))
    throw Error{Code::kInvalidArgument,
                fmt::format("address '{}' is not a loopback address, expected 127.0.0.1: beyond this machine "
                            "the dashboard is served with TLS and a sign-in alone",
                            address)};
  beast::error_code ec;
  const auto ip = net::ip::make_address(address, ec);
  const tcp::endpoint endpoint{ec ? net::ip::address_v4::loopback() : ip, port};  // "localhost" has no number
  tcp::acceptor acceptor{network};
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(net::socket_base::reuse_address{true}, ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(net::socket_base::max_listen_connections, ec);
  if (ec == net::error::address_in_use)
    throw Error{Code::kUnavailable,
                fmt::format("port {} on {} is in use: choose another, or 0 for any free one", port, address)};
  if (ec)
    throw Error{Code::kUnavailable,
                fmt::format("cannot listen on {} port {}: {}", address, port, ec.message())};
  return acceptor;
}

}  // namespace

/// The network thread with everything that runs on it. Every coroutine is a child with a signal of its own:
/// to stop is to cancel them all, wait a moment, and insist.
class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : options_{options},
        site_{new Site{.options = options,
                       .readers = Readers{options.store, options.log, options.others},
                       .hub = Hub{network_.get_executor(), options.heartbeat},
                       .crowd = Crowd{options.limits.connections, options.limits.of_one_address},
                       .rate = Rate{options.limits.requests, options.limits.requests_a_second},
                       .streams = Streams{room_for_streams(options.limits.connections),
                                          room_for_streams(options.limits.of_one_address),
                                          options.limits.event_streams_of_one},
                       .actions = ActionDesk{options.actions}}},
        acceptor_{listen_on(network_, options)},
        endpoint_{acceptor_.local_endpoint()} {
    if (options.doorkeeper)
      site_->sign_in.emplace(*options.doorkeeper, options.clock ? *options.clock : system_clock_,
                             endpoint_.port());
    if (options.certificate) renew_context();
    spawn(accept());
    if (options.watch_store) spawn(watch());
    thread_ = std::thread{[this] { network_.run(); }};
  }

  ~Impl() {
    net::post(network_, [this] {
      stopping_ = true;
      beast::error_code ignored;
      acceptor_.close(ignored);
      site_->readers.abandon_all();
      for (auto& child : children_) child.emit(net::cancellation_type::all);
      force_.expires_after(kGoodbye);
      force_.async_wait([this](beast::error_code ec) {
        if (!ec) network_.stop();
      });
      if (children_.empty()) force_.cancel();
    });
    thread_.join();
    site_->readers.stop();  // their last answers go to a network that is stopped: nothing runs any more
    site_->actions.finish();
  }

  std::uint16_t port() const { return endpoint_.port(); }
  std::string url() const {
    const auto ip = endpoint_.address();
    const std::string host = ip.is_v6() ? fmt::format("[{}]", ip.to_string()) : ip.to_string();
    return fmt::format("{}://{}:{}/", options_.certificate ? "https" : "http", host, port());
  }
  void publish(storage::Change change) { site_->hub.publish(std::move(change)); }
  void set_trouble(const std::string& trouble) { site_->hub.set_trouble(trouble); }
  void look_who_is_there() { site_->hub.look_who_is_there(); }

 private:
  /// Whoever connects from now on is shown the certificate that is current.
  void renew_context() {
    auto pem = options_.certificate->current();
    if (pem == pem_) return;
    pem_ = std::move(pem);  // what cannot be used is said once
    try {
      context_ = context_of(*pem_);
    } catch (const boost::system::system_error& error) {
      if (!context_)
        throw Error{Code::kInvalidArgument,
                    fmt::format("the certificate cannot be used: {}", error.code().message())};
      log_error("dashboard: the new certificate is not used, the one before stays: {}",
                error.code().message());
    }
  }

  void spawn(net::awaitable<void> work) {
    const auto signal = children_.emplace(children_.end());
    net::co_spawn(network_, std::move(work),
                  net::bind_cancellation_slot(signal->slot(), [this, signal](std::exception_ptr error) {
                    children_.erase(signal);
                    if (stopping_ && children_.empty()) force_.cancel();
                    report(error);
                  }));
  }

  /// A peer that went away, or did not keep its deadline, is no news.
  void report(const std::exception_ptr& error) const {
    if (!error || stopping_) return;
    try {
      std::rethrow_exception(error);
    } catch (const boost::system::system_error&) {
    } catch (const std::exception& e) {
      log_warning("dashboard: a connection was given up: {}", e.what());
    }
  }

  net::awaitable<void> accept() {
    for (;;) {
      beast::error_code ec;
      tcp::socket socket = co_await acceptor_.async_accept(net::redirect_error(net::use_awaitable, ec));
      if (stopping_) co_return;
      if (ec) {
        log_warning("dashboard: cannot accept a connection: {}", ec.message());
        net::steady_timer retry{network_, kAcceptRetry};
        co_await retry.async_wait(net::use_awaitable);
      } else if (const auto peer = socket.remote_endpoint(ec);
                 !ec && site_->crowd.make_room(peer.address())) {
        if (options_.certificate) renew_context();
        spawn(serve(std::make_unique<Visitor>(site_, std::move(socket), context_)));
      }
    }
  }

  /// Stands in for `publish` where another process writes the store.
  net::awaitable<void> watch() {
    net::steady_timer timer{network_};
    for (bool failing = false;;) {
      timer.expires_after(kLookEvery);
      co_await timer.async_wait(net::use_awaitable);
      try {
        if (co_await site_->readers.changed()) site_->hub.publish(storage::Change{});
        failing = false;
      } catch (const Error& error) {
        if (!failing) log_warning("dashboard: {}", error.what());
        failing = true;  // said once; the next look may find it well again
      }
    }
  }

  const ServerOptions options_;
  const SystemClock system_clock_;
  std::list<net::cancellation_signal> children_;  // outlives the network, whose frames refer to it
  net::io_context network_{1};
  std::shared_ptr<Site> site_;
  std::shared_ptr<const access::ServerPem> pem_;
  std::shared_ptr<net::ssl::context> context_;  // of pem_
  tcp::acceptor acceptor_;
  const tcp::endpoint endpoint_;
  net::steady_timer force_{network_};
  bool stopping_ = false;
  std::thread thread_;
};

Server::Server(const ServerOptions& options) : impl_{std::make_unique<Impl>(options)} {}
Server::~Server() = default;
std::uint16_t Server::port() const { return impl_->port(); }
std::string Server::url() const { return impl_->url(); }
void Server::set_trouble(const std::string& trouble) { impl_->set_trouble(trouble); }
void Server::look_who_is_there() { impl_->look_who_is_there(); }
void Server::publish(storage::Change change) { impl_->publish(std::move(change)); }

}  // namespace abl::web
