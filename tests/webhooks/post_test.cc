// SPDX-License-Identifier: Apache-2.0
#include "webhooks/post.h"

#include <gmock/gmock.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <future>
#include <optional>
#include <thread>

#include "access/certificates.h"

namespace abl::webhooks {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

/// Takes one connection on loopback, and answers one request with what it was told; or says nothing.
class Server {
 public:
  explicit Server(std::optional<std::string> answer, const access::Certificates* tls = nullptr,
                  const char* address = "127.0.0.1")
      : answer_{std::move(answer)}, acceptor_{io_, {net::ip::make_address(address), 0}} {
    if (tls) {
      context_.emplace(net::ssl::context::tls_server);
      context_->use_certificate_chain(net::buffer(tls->certificate));
      context_->use_private_key(net::buffer(tls->key), net::ssl::context::pem);
    }
    thread_ = std::thread{[this] { serve(); }};
  }
  ~Server() {
    boost::system::error_code ignored;
    net::ip::tcp::socket last{io_};
    last.connect(acceptor_.local_endpoint(), ignored);  // nobody came
    over_.set_value();
    thread_.join();
  }
  std::uint16_t port() { return acceptor_.local_endpoint().port(); }
  http::request<http::string_body> got;

 private:
  void serve() {
    boost::system::error_code failed;
    net::ip::tcp::socket socket{io_};
    acceptor_.accept(socket, failed);
    if (failed) return;
    if (!context_) return exchange(socket);
    net::ssl::stream<net::ip::tcp::socket&> secure{socket, *context_};
    secure.handshake(net::ssl::stream_base::server, failed);
    if (!failed) exchange(secure);
  }
  template <class Stream>
  void exchange(Stream& stream) {
    boost::system::error_code failed;
    beast::flat_buffer buffer;
    http::read(stream, buffer, got, failed);
    if (failed) return;
    if (!answer_) return over_.get_future().wait();
    net::write(stream, net::buffer(*answer_), failed);
  }

  std::optional<std::string> answer_;
  net::io_context io_;
  net::ip::tcp::acceptor acceptor_;
  std::optional<net::ssl::context> context_;
  std::promise<void> over_;
  std::thread thread_;
};

Webhook to(std::uint16_t port, bool tls = false, const std::string& host = "127.0.0.1") {
  return {.name = "lab",
          .url = {.tls = tls, .host = host, .port = port, .target = "/in?x=1"},
          .events = {},
          .sweeps = {}};
}
const Message kMessage{.event = "row-failed", .id = "3f2a-1-2-row-failed", .body = R"({"text":"hello"})"};

TEST(Post, SaysWhatHappenedAndWhoseItIs) {
  Server server{"HTTP/1.1 204 No Content\r\n\r\n"};
  Webhook webhook = to(server.port());
  webhook.secret = "key";
  const Posted posted = post(webhook, kMessage);
  EXPECT_TRUE(posted.taken()) << posted.why;
  EXPECT_EQ(server.got.method(), http::verb::post);
  EXPECT_EQ(server.got.target(), "/in?x=1");
  EXPECT_EQ(server.got[http::field::content_type], "application/json");
  EXPECT_EQ(server.got[http::field::host], "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.got["Ablate-Event"], "row-failed");
  EXPECT_EQ(server.got["Ablate-Delivery"], "3f2a-1-2-row-failed");
  EXPECT_EQ(server.got["Ablate-Signature"], signature_of(kMessage.body, "key"));
  EXPECT_EQ(server.got.body(), kMessage.body);
}

TEST(Post, ASignatureIsThatOfRfc4231) {
  EXPECT_EQ(signature_of("what do ya want for nothing?", "Jefe"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Post, WhatTheReceiverSaysIsToldApart) {
  {
    Server server{"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\n\r\n"};
    const Posted posted = post(to(server.port()), kMessage);
    EXPECT_FALSE(posted.taken() || posted.refused());
    EXPECT_EQ(posted.retry_after, 30s);
  }
  {
    Server server{"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"};
    const Posted posted = post(to(server.port()), kMessage);
    EXPECT_TRUE(posted.refused()) << "a redirection is not followed";
    EXPECT_EQ(posted.why, "HTTP 302 Found");
  }
  {
    Server server{"HTTP/1.1 500 Oh\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n\r\n"};
    const Posted posted = post(to(server.port()), kMessage);
    EXPECT_FALSE(posted.taken() || posted.refused());
    EXPECT_FALSE(posted.retry_after);
  }
}

TEST(Post, WhereNobodyAnswersItSaysWhy) {
  std::uint16_t closed = 0;
  {
    net::io_context io;
    closed = net::ip::tcp::acceptor{io, {net::ip::address_v4::loopback(), 0}}.local_endpoint().port();
  }
  EXPECT_EQ(post(to(closed), kMessage).why, "Connection refused");
  EXPECT_EQ(post(to(80, false, "no-such-host.invalid"), kMessage).why, "unknown host no-such-host.invalid");
  Server silent{std::nullopt};
  const Posted posted = post(to(silent.port()), kMessage, {}, 200ms);
  EXPECT_EQ(posted.status, 0u);
  EXPECT_EQ(posted.why, "no answer in time");
  Server other{"SSH-2.0-OpenSSH_9.2\r\n"};
  EXPECT_FALSE(post(to(other.port()), kMessage).taken());
  Server endless{"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')};
  EXPECT_FALSE(post(to(endless.port()), kMessage).taken()) << "a header without an end is not read";
}

TEST(Post, AProgramThatStopsDoesNotWaitForIt) {
  Server silent{std::nullopt};
  std::stop_source stop;
  std::jthread later{[&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  }};
  EXPECT_FALSE(post(to(silent.port()), kMessage, stop.get_token(), 60s).taken());
}

TEST(Post, OverTlsOnlyAServerOfThatNameWithATrustedCertificateIsTold) {
  const auto certificates = access::make_certificates({"localhost", "127.0.0.1"}, SystemClock{}.now());
  const std::string yes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  for (const char* host : {"localhost", "127.0.0.1"}) {
    Server server{yes, &certificates};
    Webhook webhook = to(server.port(), true, host);
    webhook.ca = certificates.authority;
    const Posted posted = post(webhook, kMessage);
    EXPECT_TRUE(posted.taken()) << host << ": " << posted.why;
  }
  {
    Server server{yes, &certificates};
    const Posted posted = post(to(server.port(), true, "localhost"), kMessage);
    EXPECT_THAT(posted.why, AllOf(HasSubstr("the certificate of localhost"), HasSubstr("ca_file")));
    EXPECT_EQ(server.got.body(), "") << "who is not trusted hears nothing";
  }
  {
    Server server{yes, &certificates, "127.0.0.2"};
    Webhook webhook = to(server.port(), true, "127.0.0.2");
    webhook.ca = certificates.authority;
    EXPECT_THAT(post(webhook, kMessage).why, HasSubstr("the certificate of 127.0.0.2")) << "of other names";
    EXPECT_EQ(server.got.body(), "");
  }
  {
    Server server{yes};
    EXPECT_EQ(post(to(server.port(), true, "localhost"), kMessage).why,
              "the connection was closed without an answer");
  }
}

}  // namespace
}  // namespace abl::webhooks
