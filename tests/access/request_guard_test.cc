// SPDX-License-Identifier: Apache-2.0
#include "access/request_guard.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

namespace abl::access {
namespace {

TEST(Guard, LetsLoopbackNamesIn) {
  for (const char* host :
       {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:80", "127.1.2.3:9", "[::1]", "[::1]:8080"})
    EXPECT_EQ(refusal({.host = host}), std::nullopt) << host;
}

TEST(Guard, RefusesEveryOtherHost) {
  for (const char* host :
       {"", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.0.0.1@evil.example", "192.168.0.1", "0.0.0.0", "::1", "[::1", "[::1]x",
        "localhost:", "localhost:8080x", "127.1", "localhost:80:80"})
    EXPECT_NE(refusal({.host = host}), std::nullopt) << host;
}

TEST(Guard, TakesAnOriginOnlyFromItsOwnPages) {
  EXPECT_EQ(refusal({.host = "localhost:8080", .origin = "http://localhost:8080"}), std::nullopt);
  for (const char* origin : {"null", "", "http://evil.example", "http://localhost:8081",
                             "http://127.0.0.1:8080", "http://localhost:8080.evil.example"})
    EXPECT_NE(refusal({.host = "localhost:8080", .origin = origin}), std::nullopt) << origin;
}

TEST(Guard, LetsTheNamesOfACertificateInAndTheirWildcards) {
  const std::vector<std::string> names{"gpu-head", "10.0.0.5", "*.example.org"};
  for (const char* host : {"gpu-head:8571", "GPU-HEAD", "10.0.0.5", "a.example.org:1", "localhost"})
    EXPECT_EQ(refusal({.host = host}, names), std::nullopt) << host;
  for (const char* host : {"evil.example", "gpu-head.evil.example", "example.org", "a.b.example.org",
                           ".example.org", "10.0.0.50"})
    EXPECT_NE(refusal({.host = host}, names), std::nullopt) << host;
}

TEST(Guard, OverTlsAnOriginInPlainTextIsAnother) {
  EXPECT_EQ(refusal({.host = "localhost", .origin = "https://localhost", .secure = true}), std::nullopt);
  EXPECT_NE(refusal({.host = "localhost", .origin = "http://localhost", .secure = true}), std::nullopt);
}

TEST(Guard, RefusesWhatAPageOfAnotherSiteAsksFor) {
  const auto ask = [](std::string_view site, std::string_view mode, bool page) {
    return refusal({.host = "localhost:8080", .site = site, .mode = mode, .page = page});
  };
  for (const char* site : {"cross-site", "same-site"}) {  // same-site: another port of this machine
    for (const char* mode : {"no-cors", "cors", "navigate", "websocket", ""})
      EXPECT_TRUE(ask(site, mode, false));
    EXPECT_TRUE(ask(site, "no-cors", true)) << "a script of it";
    EXPECT_FALSE(ask(site, "navigate", true)) << "a link in a chat";
  }
  for (const char* site : {"same-origin", "none", ""}) EXPECT_FALSE(ask(site, "cors", false)) << site;
}

constexpr auto kList =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33 1 00 100 "
    "0\n"
    "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 34 1 00 100 "
    "0\n"
    "   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 35 1 00 100 "
    "0\n"
    "   3: 0100007F:C351 0100007F:1F90 05 00000000:00000000 03:00001751 00000000     0        0 0 3 0\n";

sockaddr_storage loopback(std::uint16_t port) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return storage;
}

std::optional<uid_t> user_at(std::uint16_t ours, std::uint16_t peer, const char* text = kList) {
  std::istringstream list{text};
  return user_in_list(list, loopback(ours), loopback(peer));
}

TEST(LocalPeer, IsTheOwnerOfTheOtherEndAndNotOfOurs) {
  EXPECT_EQ(user_at(8080, 50000), 1001u);
  EXPECT_EQ(user_at(50000, 8080), 1000u);
}

TEST(LocalPeer, IsNobodyWhereTheListDoesNotHaveIt) {
  EXPECT_EQ(user_at(8080, 50002), std::nullopt);
  EXPECT_EQ(user_at(8081, 50000), std::nullopt);
  EXPECT_EQ(user_at(8080, 50000, ""), std::nullopt);
  EXPECT_EQ(user_at(8080, 50000, "heading\n1: 0100007F:C350 0100007F:1F90 nonsense\n\n"), std::nullopt);
}

TEST(LocalPeer, IsNobodyOnceItHasClosedItsEndThoughTheListSaysRoot) {
  EXPECT_EQ(user_at(8080, 50001), std::nullopt);
}

/// Both ends of a connection of this program with itself, over the address of `listening`.
void expect_own(const sockaddr_storage& listening, socklen_t size, int client_family,
                const sockaddr_storage* target = nullptr, socklen_t target_size = 0) {
  const int listener = ::socket(listening.ss_family, SOCK_STREAM, 0);
  if (listener < 0) return;  // a machine without IPv6
  sockaddr_storage bound = listening;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&bound), size) != 0) {
    ::close(listener);
    return;
  }
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size), 0);
  sockaddr_storage to = target ? *target : bound;
  if (target) reinterpret_cast<sockaddr_in6&>(to).sin6_port = reinterpret_cast<sockaddr_in&>(bound).sin_port;
  const int client = ::socket(client_family, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&to), target ? target_size : size), 0);
  const int ours = ::accept(listener, nullptr, nullptr);
  EXPECT_EQ(user_of_peer(ours), ::geteuid());
  ::close(client);
  EXPECT_EQ(user_of_peer(ours), std::nullopt) << "whose it was is not known any more";
  ::close(ours);
  ::close(listener);
}

TEST(LocalPeer, OfAConnectionWithOurselvesIsUs) {
  expect_own(loopback(0), sizeof(sockaddr_in), AF_INET);
  sockaddr_storage v6{}, mapped{};
  auto& address = reinterpret_cast<sockaddr_in6&>(v6);
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  expect_own(v6, sizeof(sockaddr_in6), AF_INET6);
  auto& through = reinterpret_cast<sockaddr_in6&>(mapped);
  through.sin6_family = AF_INET6;
  ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:127.0.0.1", &through.sin6_addr), 1);
  if (const int supported = ::socket(AF_INET6, SOCK_STREAM, 0); supported >= 0) {
    ::close(supported);
    expect_own(loopback(0), sizeof(sockaddr_in), AF_INET6, &mapped, sizeof(sockaddr_in6));
  }
}

TEST(LocalPeer, IsNobodyOfWhatIsNoConnection) { EXPECT_EQ(user_of_peer(-1), std::nullopt); }

TEST(LocalPeer, OwnAreThisUserAndRoot) {
  EXPECT_TRUE(is_own_user(::geteuid()));
  EXPECT_TRUE(is_own_user(0));
  EXPECT_FALSE(is_own_user(::geteuid() + 12345));
}

}  // namespace
}  // namespace abl::access
