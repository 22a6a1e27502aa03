// SPDX-License-Identifier: Apache-2.0
// What people are told of an address at which no scheduler answers them. Servers of gRPC: tests/scheduler.
#include "access/reach.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace abl::access {
namespace {

using Kind = Trouble::Kind;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A port of this machine where whoever connects is answered with texts, one after the other, and nothing
/// after them; or with nothing at all.
class Answering {
 public:
  enum class End { kCloses, kResets };
  explicit Answering(std::optional<std::vector<std::string>> texts, End end = End::kCloses)
      : texts_{std::move(texts)}, end_{end} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_, generic, size) == 0 && ::listen(fd_, 16) == 0 && ::getsockname(fd_, generic, &size) == 0)
      port_ = ntohs(address.sin_port);
    if (texts_) thread_ = std::thread{[this] { answer(); }};
  }
  ~Answering() {
    ::shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(fd_);
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  void answer() const {
    for (int guest; (guest = ::accept(fd_, nullptr, nullptr)) >= 0; ::close(guest)) {
      std::array<char, 1024> asked{};
      if (::recv(guest, asked.data(), asked.size(), 0) <= 0) continue;
      const int now = 1;
      ::setsockopt(guest, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
      for (const std::string& text : *texts_) ::send(guest, text.data(), text.size(), MSG_NOSIGNAL);
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      if (end_ == End::kResets) ::setsockopt(guest, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }

  const std::optional<std::vector<std::string>> texts_;
  const End end_;
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
  std::thread thread_;
};

void expect_trouble(const std::string& address, Kind kind, const char* words) {
  for (const bool tls : {false, true}) {
    const Trouble trouble = look_for_trouble(address, {.tls = tls, .authorities = "", .token = ""});
    EXPECT_EQ(static_cast<int>(trouble.kind), static_cast<int>(kind)) << trouble.text;
    EXPECT_THAT(trouble.text, AllOf(HasSubstr(words), Not(HasSubstr("\n"))));
  }
}

void expect_trouble_with_tls(const std::string& address, Kind kind, const char* words) {
  const Trouble trouble = look_for_trouble(address, {.tls = true, .authorities = "", .token = ""});
  EXPECT_EQ(static_cast<int>(trouble.kind), static_cast<int>(kind)) << trouble.text;
  EXPECT_THAT(trouble.text, AllOf(HasSubstr(words), Not(HasSubstr("\n"))));
}

TEST(Reach, WhatIsNoAddressIsSaidToBeNone) {
  for (const char* address : {"gpu-head", "http://gpu-head:7071", "gpu-head:", "gpu-head:port", ":7071"})
    expect_trouble(address, Kind::kAddress, "expected HOST:PORT, such as gpu-head:7071");
}

TEST(Reach, APortThatThereIsNotIsNoPortOfAnother) {
  for (const char* address : {"127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:72607"})  // 65536 + 7071
    expect_trouble(address, Kind::kAddress, "expected 1 to 65535, such as 127.0.0.1:7071");
}

TEST(Reach, AHostThatNobodyKnowsIsNamed) {
  expect_trouble("no-such-host.invalid:7071", Kind::kUnknownHost,
                 "host 'no-such-host.invalid' cannot be found");
}

TEST(Reach, WhereNobodyListensTheConnectionIsRefused) {
  std::string address;
  {
    const Answering gone{std::nullopt};
    address = gone.address();
  }
  expect_trouble(address, Kind::kRefused, "connection refused");
  EXPECT_EQ(tls_trouble(address, ""), "");
  EXPECT_EQ(tls_trouble("unix:/x", ""), "");
  EXPECT_FALSE(speaks_tls(address));
}

TEST(Reach, AServerOfPagesIsToldFromAScheduler) {
  const Answering pages{{{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"}}};
  expect_trouble(pages.address(), Kind::kHttp,
                 "answers browsers (a dashboard?), and is not a scheduler's port");
}

TEST(Reach, WhoLetsOneConnectAndSaysNothingIsSaidToBeSilent) {
  const Answering silent{std::nullopt};
  const Trouble trouble = look_for_trouble(silent.address(), {});
  EXPECT_EQ(static_cast<int>(trouble.kind), static_cast<int>(Kind::kSilent));
  EXPECT_THAT(trouble.text, HasSubstr("lets one connect and says nothing for 3 s"));
}

TEST(Reach, WhoAnswersWhatNoSchedulerSaysIsNone) {
  for (const char* words : {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "220 mail.example.org ESMTP\r\n", "HTTQ"}) {
    const Answering other{{{words}}};
    expect_trouble(other.address(), Kind::kElse, "is not a scheduler: expected the port of its --listen");
  }
}

// a scheduler that is stopped, or a proxy in front of it, ends connections at whatever place
TEST(Reach, WhoEndsTheConnectionBeforeItIsKnownWhoItIsMayBeAScheduler) {
  using std::string_literals::operator""s;
  for (const auto end : {Answering::End::kCloses, Answering::End::kResets})
    for (const auto& said :
         {std::vector<std::string>{}, {"\0\0"s}, {"\0"s, "\0\x12"s}, {"HTT"s}, {"\x15"s}}) {
      const Answering ends{said, end};
      const Trouble trouble = look_for_trouble(ends.address(), {});
      EXPECT_EQ(static_cast<int>(trouble.kind), static_cast<int>(Kind::kClosed)) << trouble.text;
      EXPECT_THAT(trouble.text,
                  HasSubstr("closes connections without an answer: behind it is no scheduler just now"));
    }
  const Answering closes{{{}}};
  expect_trouble(closes.address(), Kind::kClosed, "closes connections");
}

TEST(Reach, ASchedulersFirstWordsMayComeInPieces) {
  using std::string_literals::operator""s;
  const Answering settings{{{"\0\0"s, "\0\4\0\0\0\0\0"s}}};
  EXPECT_EQ(look_for_trouble(settings.address(), {}).text, "");
  expect_trouble_with_tls(settings.address(), Kind::kPlain, "there is no TLS at");
}

// as while its certificate is exchanged
TEST(Reach, WhoEndsTheHandshakeWithAnAlertSpeaksTls) {
  using std::string_literals::operator""s;
  const Answering alerts{{{"\x15\3\3\0\2\2\x50"s}}};  // fatal: internal error
  const Trouble plainly = look_for_trouble(alerts.address(), {});
  EXPECT_EQ(static_cast<int>(plainly.kind), static_cast<int>(Kind::kTls)) << plainly.text;
  expect_trouble_with_tls(alerts.address(), Kind::kClosed, "does not finish the TLS handshake");
}

TEST(Reach, ThereIsNothingToSayOfASocket) {
  EXPECT_EQ(look_for_trouble("unix:/nowhere/s.sock", {}).text, "");
}

}  // namespace
}  // namespace abl::access
