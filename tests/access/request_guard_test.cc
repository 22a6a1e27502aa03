// SPDX-License-Identifier: Apache-2.0
#include "access/request_guard.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace abl::access
