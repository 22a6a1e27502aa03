// SPDX-License-Identifier: Apache-2.0
// A dashboard over TLS, and connections that ask for nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>

#include <list>

#include "access/reach.h"
#include "access/token.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"
#include "tests/web/demo_store.h"
#include "tests/web/http_client.h"
#include "web/server/server.h"

namespace abl::web {
namespace {

namespace net = boost::asio;
using net::ip::tcp;
using testing::HasSubstr;
using testing::StartsWith;

/// A connection by TLS that trusts one authority.
class TlsClient {
 public:
  /// Throws where the server shows a certificate of another.
  TlsClient(std::uint16_t port, const std::string& authority) {
    context_.set_verify_mode(net::ssl::verify_peer);
    context_.add_certificate_authority(net::buffer(authority));
    stream_.emplace(io_, context_);
    stream_->lowest_layer().connect({net::ip::address_v4::loopback(), port});
    stream_->handshake(net::ssl::stream_base::client);
  }
  /// The head of the answer.
  std::string get(const std::string& target, const std::string& host = "localhost") {
    net::write(*stream_, net::buffer(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", target, host)));
    net::streambuf answer;
    const std::size_t size = net::read_until(*stream_, answer, "\r\n\r\n");
    return {net::buffers_begin(answer.data()),
            net::buffers_begin(answer.data()) + static_cast<std::ptrdiff_t>(size)};
  }
  /// Reads what there is until the server has left. False: something else went wrong.
  bool is_closed() {
    std::string rest;
    boost::system::error_code ec;
    net::read(*stream_, net::dynamic_buffer(rest), ec);
    return ec == net::error::eof || ec == net::ssl::error::stream_truncated;
  }

 private:
  net::io_context io_;
  net::ssl::context context_{net::ssl::context::tls_client};
  std::optional<net::ssl::stream<tcp::socket>> stream_;
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() : demo_{folder_ / "results.db"} {
    authority_ = put(access::make_certificates({"gpu-head", "10.0.0.5"}, now_));
    certificate_ = std::make_shared<access::ServerCertificate>(files_, now_);
    start({});
  }
  void start(Limits limits) {
    server_.emplace(
        ServerOptions{.store = folder_ / "results.db", .certificate = certificate_, .limits = limits});
  }
  std::string put(const access::Certificates& made) {
    access::write_secret(files_.certificate, made.certificate);
    access::write_secret(files_.key, made.key);
    return made.authority;
  }
  void look_again() {  // what has changed is read when it has stood still
    certificate_->look_again(now_);
    certificate_->look_again(now_);
  }
  TlsClient client() { return TlsClient{server_->port(), authority_}; }

  TemporaryFolder folder_;
  DemoStore demo_;
  const Time now_ = SystemClock{}.now();
  const access::TlsFiles files_{.certificate = folder_ / "server.crt", .key = folder_ / "server.key"};
  std::string authority_;
  std::shared_ptr<access::ServerCertificate> certificate_;
  std::optional<Server> server_;
};

TEST_F(TlsTest, AnswersToTheNamesInItsCertificateAlone) {
  EXPECT_THAT(server_->url(), StartsWith("https://127.0.0.1:"));
  for (const char* host : {"localhost", "127.0.0.1:80", "gpu-head", "GPU-head:8571", "10.0.0.5:8571"})
    EXPECT_THAT(client().get("/api/v1/sweeps", host), StartsWith("HTTP/1.1 200")) << host;
  for (const char* host : {"evil.example", "gpu-head.evil.example", "10.0.0.6"})
    EXPECT_THAT(client().get("/api/v1/sweeps", host), StartsWith("HTTP/1.1 403")) << host;
}

TEST_F(TlsTest, KeepsAConnectionAndStopsWhileItIsOpen) {
  TlsClient one = client();
  EXPECT_THAT(one.get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(one.get("/metrics"), StartsWith("HTTP/1.1 200"));
  server_.reset();
  EXPECT_TRUE(one.is_closed());
}

TEST_F(TlsTest, PlainTextIsToldToSpeakTls) {
  HttpClient plain{server_->port()};
  plain.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(plain.read_until("this port speaks TLS: ask for https://")) << plain.seen();
}

TEST_F(TlsTest, ANewCertificateIsShownToNewConnectionsAndABrokenOneIsNot) {
  TlsClient before = client();
  const std::string first = authority_;
  access::write_secret(files_.certificate, "broken");
  look_again();
  EXPECT_THAT(client().get("/healthz"), StartsWith("HTTP/1.1 200")) << "the one before stays";
  authority_ = put(access::make_certificates({"gpu-head"}, now_));
  look_again();
  EXPECT_THAT(client().get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THROW((TlsClient{server_->port(), first}), boost::system::system_error);
  EXPECT_THAT(before.get("/healthz"), StartsWith("HTTP/1.1 200")) << "what is there goes on";
}

TEST_F(TlsTest, WhoeverCallsAServerWhoseCertificateHasExpiredIsToldSoInOneLine) {
  const Time then = now_ - std::chrono::hours{24 * 800};
  authority_ = put(access::make_certificates({"gpu-head"}, then));
  certificate_ = std::make_shared<access::ServerCertificate>(files_, then);  // it was good when it was read
  start({});
  const std::string address = fmt::format("127.0.0.1:{}", server_->port());
  EXPECT_THAT(
      access::tls_trouble(address, authority_),
      testing::MatchesRegex("the certificate of " + address +
                            " expired on 20..-..-.. at ..:.. UTC: its administrator has to replace it"));
}

TEST_F(TlsTest, BeyondLoopbackItWantsACertificateAndASignIn) {
  const auto refusal = [&](ServerOptions options) {
    options.store = folder_ / "results.db";
    options.address = "0.0.0.0";
    try {
      const Server server{options};
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(refusal({}), HasSubstr("'0.0.0.0' is not a loopback address"));
  EXPECT_THAT(refusal({.certificate = certificate_}), HasSubstr("with TLS and a sign-in alone"));
}

/// Sockets that connect and then do as they are told, which is little.
class Loiterers {
 public:
  Loiterers(std::uint16_t port, int count, const std::string& text) {
    for (int i = 0; i < count; ++i) {
      tcp::socket& socket = sockets_.emplace_back(io_);
      socket.connect({net::ip::address_v4::loopback(), port});
      boost::system::error_code gone;
      if (!text.empty()) net::write(socket, net::buffer(text), gone);
    }
  }

 private:
  net::io_context io_;
  std::list<tcp::socket> sockets_;
};

TEST_F(TlsTest, HalfOpenConnectionsKeepNobodyOut) {
  TlsClient guest = client();
  EXPECT_THAT(guest.get("/healthz"), StartsWith("HTTP/1.1 200"));
  {
    const Loiterers silent{server_->port(), 500, ""};
    EXPECT_THAT(client().get("/api/v1/sweeps"), StartsWith("HTTP/1.1 200"));
  }
  const Loiterers unfinished{server_->port(), 500, std::string{"\x16\x03\x01\x02\x00\x01\x00", 7}};
  EXPECT_THAT(client().get("/api/v1/sweeps"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(guest.get("/healthz"), StartsWith("HTTP/1.1 200")) << "who has asked before stays";
}

TEST_F(TlsTest, HeadersThatNeverEndKeepNobodyOut) {
  server_.emplace(ServerOptions{.store = folder_ / "results.db"});
  const Loiterers slow{server_->port(), 500, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "};
  EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/sweeps").status, 200);
}

/// Event streams that stay open, each on a connection of its own.
class Pages {
 public:
  Pages(std::uint16_t port, int count) {
    for (int i = 0; i < count; ++i) {
      HttpClient& page = *pages_.emplace_back(std::make_unique<HttpClient>(port));
      page.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
      EXPECT_TRUE(page.read_until("event: heartbeat")) << "page " << i;
    }
  }

 private:
  std::vector<std::unique_ptr<HttpClient>> pages_;
};

TEST_F(TlsTest, WhereNobodySignsInAnAddressHasSoManyOpenPagesAndIsToldSo) {
  server_.emplace(ServerOptions{.store = folder_ / "results.db", .limits = {.event_streams_of_one = 4}});
  {
    const Pages pages{server_->port(), 4};
    const Reply refused = HttpClient{server_->port()}.get("/api/v1/events");
    EXPECT_EQ(refused.status, 429);
    EXPECT_THAT(refused.body,
                HasSubstr("4 pages of this dashboard are open with this address, as many as may be"));
    EXPECT_THAT(HttpClient{server_->port()}.get("/api/v1/whoami").body,
                HasSubstr("as many as may be: close some"))
        << "for a browser does not tell its page what a stream was answered";
    EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/sweeps").status, 200) << "all else is answered";
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (HttpClient{server_->port()}.get("/api/v1/whoami").body.find("as many") != std::string::npos &&
         std::chrono::steady_clock::now() < deadline)
    server_->publish({"study", 1});  // who has left is noticed by what is written
  const Pages again{server_->port(), 4};
}

TEST_F(TlsTest, OpenPagesLeaveRoomForRequests) {
  server_.emplace(
      ServerOptions{.store = folder_ / "results.db",
                    .limits = {.connections = 8, .of_one_address = 8, .event_streams_of_one = 100}});
  const Pages pages{server_->port(), 6};
  EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/events").status, 429);
  EXPECT_EQ(HttpClient{server_->port()}.get("/api/v1/sweeps").status, 200);
}

TEST_F(TlsTest, WhoIsAtWorkIsNotPutOutForAnother) {
  server_.emplace(ServerOptions{.store = folder_ / "results.db", .limits = {.of_one_address = 2}});
  HttpClient stream{server_->port()}, other{server_->port()};
  for (HttpClient* client : {&stream, &other}) {
    client->write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(client->read_until("event: heartbeat"));
  }
  HttpClient late{server_->port()};
  EXPECT_TRUE(late.closed_by_server());
  server_->publish({"study", 1});
  EXPECT_TRUE(stream.read_until("\"study\""));
  EXPECT_TRUE(other.read_until("\"study\""));
}

}  // namespace
}  // namespace abl::web
