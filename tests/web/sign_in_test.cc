// SPDX-License-Identifier: Apache-2.0
// Who may look at a dashboard where people sign in.
#include "web/server/sign_in.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <list>
#include <mutex>
#include <set>

#include "base/error.h"
#include "tests/temporary_folder.h"
#include "tests/web/demo_store.h"
#include "tests/web/http_client.h"
#include "web/server/static_files.h"

namespace abl::web {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// The time stands still but for what a test lets pass.
class FakeClock final : public Clock {
 public:
  Time now() const override { return Time{Milliseconds{ms.load()}}; }
  void pass(Milliseconds time) { ms += time.count(); }
  std::atomic<std::int64_t> ms = 1'800'000'000'000;
};

/// Knows "vera", a viewer, and "will", a worker.
class FakeDoorkeeper final : public Doorkeeper {
 public:
  Holder recognise(std::string_view token) override {
    const std::lock_guard lock{mutex};
    ++asked;
    if (token == "will") throw Error{Code::kPermissionDenied, "a worker's token is for its worker alone"};
    if (!token.starts_with("vera")) throw Error{Code::kUnauthenticated, "this token is not known here"};
    return {.token = std::string{token}, .name = "vera", .role = "viewer", .expires = expires};
  }
  std::string why_over(const std::string& token) const override {
    const std::lock_guard lock{mutex};
    return revoked.contains(token) ? "this token is revoked" : "";
  }
  void note(const Holder& holder, const std::string& what, const std::string& peer,
            const std::string& outcome) override {
    const std::lock_guard lock{mutex};
    lines.push_back(fmt::format("{} {} {}: {}", holder.name, what, peer, outcome));
  }
  void revoke(const std::string& token) {
    const std::lock_guard lock{mutex};
    revoked.insert(token);
  }

  std::optional<Time> expires;
  int asked = 0;
  std::set<std::string> revoked;
  std::vector<std::string> lines;
  mutable std::mutex mutex;
};

class SignInTest : public testing::Test {
 protected:
  SignInTest() : demo_{folder_ / "results.db"} { start(); }
  void start(Limits limits = {}) {
    server_.emplace(ServerOptions{.store = folder_ / "results.db",
                                  .heartbeat = 20ms,
                                  .version = "1.2.3",
                                  .doorkeeper = &door_,
                                  .clock = &clock_,
                                  .limits = limits});
  }
  HttpClient client() const { return HttpClient{server_->port()}; }
  Reply get(const std::string& target, const std::map<std::string, std::string>& headers = {}) {
    return client().get(target, headers);
  }
  Reply post(const std::string& target, const std::string& body,
             const std::map<std::string, std::string>& headers = {}) {
    std::string text =
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", target, body.size());
    for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    return client().raw(text + "\r\n" + body);
  }
  /// "name=value" of the cookie that a sign-in gives.
  std::string cookie_of(const Reply& reply) {
    const std::string set = reply.headers.contains("set-cookie") ? reply.headers.at("set-cookie") : "";
    return set.substr(0, set.find(';'));
  }
  std::string signed_in(const std::string& token = "vera") {
    const Reply reply = post("/sign-in", "token=" + token);
    EXPECT_EQ(reply.status, 303) << reply.body;
    return cookie_of(reply);
  }

  TemporaryFolder folder_;
  DemoStore demo_;
  FakeClock clock_;
  FakeDoorkeeper door_;
  std::optional<Server> server_;
};

TEST_F(SignInTest, WithoutASessionTheApiSaysHowToSignInAndAPageLeadsThere) {
  for (const char* path : {"/api/v1/sweeps", "/api/v1/events", "/api/v1/whoami", "/api/v1/nothing"}) {
    const Reply reply = get(path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.json().at("code"), "UNAUTHENTICATED");
    EXPECT_THAT(reply.json().at("message").get<std::string>(),
                AllOf(HasSubstr("/sign-in"), HasSubstr("Authorization: Bearer")));
    EXPECT_EQ(reply.headers.at("www-authenticate"), "Bearer");
  }
  EXPECT_EQ(get("/metrics").status, 401);
  const Reply page = get("/sweeps/a%20b?x=1&y=2");
  EXPECT_EQ(page.status, 303);
  EXPECT_EQ(page.headers.at("location"), "/sign-in?to=/sweeps/a%2520b%3Fx%3D1%26y%3D2");
  EXPECT_EQ(get("/").headers.at("location"), "/sign-in");
}

TEST_F(SignInTest, WhatEverybodyMayHaveIsTheSignInPageItsFilesAndWhetherItIsWell) {
  const Reply page = get("/sign-in?to=/sweeps/%22%3E%3Cscript%3E");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, AllOf(HasSubstr("<form method=\"post\" action=\"/sign-in\">"),
                               HasSubstr("type=\"password\""), Not(HasSubstr("<script>"))));
  EXPECT_THAT(page.headers.at("content-security-policy"),
              AllOf(HasSubstr("form-action 'self'"), Not(HasSubstr("unsafe"))));
  EXPECT_EQ(page.headers.at("cache-control"), "no-store");
  EXPECT_EQ(get("/healthz").json(), (nlohmann::json{{"status", "ok"}})) << "and no more than that";
  for (const EmbeddedFile& file : embedded_app().files) {
    if (!file.path.starts_with("assets/")) continue;
    EXPECT_EQ(get("/" + std::string{file.path}).status, 200) << file.path;
  }
  EXPECT_EQ(get("/assets/../api/v1/sweeps").status, 404);
  EXPECT_EQ(get("//api/v1/sweeps").status, 303) << "as an address that is not of the API";
}

TEST_F(SignInTest, ATokenBecomesACookieAndLeadsBackToWhereItWasWanted) {
  const Reply reply = post("/sign-in", "token=vera&to=%2Fsweeps%2Fmsf-sharing%3Fx%3D1");
  EXPECT_EQ(reply.status, 303);
  EXPECT_EQ(reply.headers.at("location"), "/sweeps/msf-sharing?x=1");
  const std::string set = reply.headers.at("set-cookie");
  EXPECT_THAT(set, testing::MatchesRegex("__Host-ablate-[0-9]+=[A-Za-z0-9_-]{43}; Path=/; Secure; HttpOnly; "
                                         "SameSite=Strict; Max-Age=43200"));
  EXPECT_THAT(set, Not(HasSubstr("vera"))) << "the token is in no cookie";
  const std::map<std::string, std::string> cookie{{"Cookie", "other=1; " + cookie_of(reply)}};
  EXPECT_EQ(get("/api/v1/sweeps", cookie).status, 200);
  EXPECT_EQ(get("/sweeps/msf-sharing", cookie).status, 200);
  EXPECT_EQ(get("/metrics", cookie).status, 200);
  EXPECT_EQ(get("/healthz", cookie).json().at("version"), "1.2.3");
  const auto who = get("/api/v1/whoami", cookie).json();
  EXPECT_EQ(who.at("name"), "vera");
  EXPECT_EQ(who.at("role"), "TOKEN_ROLE_VIEWER");
  EXPECT_EQ(who.at("token").at("id"), "vera");
  EXPECT_EQ(get("/sign-in?to=/workers", cookie).headers.at("location"), "/workers");
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie_of(reply) + "x"}}).status, 401);
}

TEST_F(SignInTest, AScriptShowsATokenWithEachRequest) {
  EXPECT_EQ(get("/api/v1/sweeps", {{"Authorization", "Bearer vera"}}).status, 200);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Authorization", "Bearer nobody"}}).status, 401);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Authorization", "Basic dmVyYTo="}}).status, 401);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Authorization", "Bearer will"}}).status, 403);
  EXPECT_EQ(get("/", {{"Authorization", "Bearer nobody"}}).status, 401) << "a script is not led to a form";
}

TEST_F(SignInTest, NobodyIsLedElsewhereBySigningIn) {
  for (const char* to : {"https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example",
                         "/\tx", "/ x", "javascript:alert(1)", "evil", "", "/sign-out", "/é"})
    EXPECT_EQ(own_path(to), "/") << to;
  EXPECT_EQ(own_path("/sweeps/a%2F%2Fb?x=//y"), "/sweeps/a%2F%2Fb?x=//y");
  EXPECT_EQ(own_path("/" + std::string(3000, 'x')), "/");
  EXPECT_EQ(post("/sign-in", "token=vera&to=%2F%2Fevil.example").headers.at("location"), "/");
  EXPECT_EQ(get("//evil.example/x").headers.at("location"), "/sign-in");
}

TEST_F(SignInTest, ARefusedTokenIsSaidOnThePageAndWrittenDownWithoutIt) {
  const Reply reply = post("/sign-in", "token=abl_secret&to=%2Fworkers");
  EXPECT_EQ(reply.status, 401);
  EXPECT_THAT(reply.body, AllOf(HasSubstr("role=\"alert\">this token is not known here"),
                                HasSubstr("value=\"/workers\""), Not(HasSubstr("abl_secret"))));
  EXPECT_FALSE(reply.headers.contains("set-cookie"));
  EXPECT_EQ(post("/sign-in", "token=will").status, 403);
  EXPECT_EQ(post("/sign-in", "").status, 401);
  EXPECT_EQ(post("/sign-in", "token=%00").status, 401);
  signed_in();
  const std::lock_guard lock{door_.mutex};
  EXPECT_THAT(door_.lines, testing::ElementsAre(" SignIn 127.0.0.1: this token is not known here",
                                                " SignIn 127.0.0.1: a worker's token is for its worker alone",
                                                " SignIn 127.0.0.1: this token is not known here",
                                                "vera SignIn 127.0.0.1: ok"));
}

TEST_F(SignInTest, WhoIsRefusedTooOftenIsNotHeardForAWhile) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(post("/sign-in", "token=x").status, 401);
  const Reply form = post("/sign-in", "token=x");
  EXPECT_EQ(form.status, 429);
  EXPECT_EQ(form.headers.at("retry-after"), "60");
  EXPECT_EQ(get("/api/v1/sweeps", {{"Authorization", "Bearer x"}}).status, 429);
  const std::lock_guard lock{door_.mutex};
  EXPECT_EQ(door_.asked, 10);
  EXPECT_EQ(door_.lines.size(), 10U) << "nor do they fill the audit";
}

TEST_F(SignInTest, ASessionOutlivesRefusalsOfOthersAtItsAddress) {
  const std::string cookie = signed_in();
  for (int i = 0; i < 12; ++i) post("/sign-in", "token=x");
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie}}).status, 200);
}

TEST_F(SignInTest, SigningOutEndsTheSessionAndItsStreams) {
  const std::string cookie = signed_in(), other = signed_in();
  HttpClient stream{server_->port()};
  stream.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: " + cookie + "\r\n\r\n");
  ASSERT_TRUE(stream.read_until("event: heartbeat"));
  const Reply reply = post("/sign-out", "", {{"Cookie", cookie}});
  EXPECT_EQ(reply.status, 303);
  EXPECT_EQ(reply.headers.at("location"), "/sign-in");
  EXPECT_THAT(reply.headers.at("set-cookie"), HasSubstr("Max-Age=0"));
  EXPECT_TRUE(stream.read_until("event: signed-out\ndata: {\"why\":\"you have signed out\"}\n\n"));
  EXPECT_FALSE(stream.read_until("anything else"));
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie}}).status, 401);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", other}}).status, 200);
}

TEST_F(SignInTest, ASessionEndsWithItsTokenAndSoDoesAnOpenStream) {
  const std::string cookie = signed_in("vera-1"), other = signed_in("vera-2");
  HttpClient by_cookie{server_->port()}, by_token{server_->port()};
  by_cookie.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: " + cookie + "\r\n\r\n");
  by_token.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer vera-1\r\n\r\n");
  for (HttpClient* stream : {&by_cookie, &by_token}) ASSERT_TRUE(stream->read_until("event: heartbeat"));
  door_.revoke("vera-1");
  server_->look_who_is_there();
  for (HttpClient* stream : {&by_cookie, &by_token})
    EXPECT_TRUE(stream->read_until("event: signed-out\ndata: {\"why\":\"this token is revoked\"}\n\n"));
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie}}).status, 401);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", other}}).status, 200);
}

TEST_F(SignInTest, ASessionEndsAfterTwelveHoursAndNotAfterItsTokenDoes) {
  const std::string cookie = signed_in();
  door_.expires = clock_.now() + 1h;
  const Reply shorter = post("/sign-in", "token=vera-2");
  EXPECT_THAT(shorter.headers.at("set-cookie"), HasSubstr("Max-Age=3600"));
  HttpClient stream{server_->port()};
  stream.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: " + cookie_of(shorter) +
               "\r\n\r\n");
  ASSERT_TRUE(stream.read_until("event: heartbeat"));
  clock_.pass(61min);
  EXPECT_TRUE(stream.read_until("event: signed-out"));
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie_of(shorter)}}).status, 401);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie}}).status, 200);
  clock_.pass(11h);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie}}).status, 401);
}

TEST_F(SignInTest, SessionsAreBoundedAndTheOldestOfATokenGoes) {
  const std::string other = signed_in("vera-2"), first = signed_in();
  for (std::size_t i = 0; i < SignIn::kMostOfOne; ++i) {
    clock_.pass(1ms);
    signed_in();
  }
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", first}}).status, 401);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", other}}).status, 200) << "nobody else pays for it";
}

TEST_F(SignInTest, OneTokenHasSoManyOpenPagesAndOthersHaveTheirs) {
  start({.event_streams_of_one = 3});
  const auto open = [&](HttpClient& page, const std::string& token) {
    page.write(fmt::format(
        "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", token));
  };
  std::list<HttpClient> pages;
  for (int i = 0; i < 3; ++i) {
    open(pages.emplace_back(server_->port()), "vera");
    ASSERT_TRUE(pages.back().read_until("event: heartbeat"));
  }
  const Reply refused = get("/api/v1/events", {{"Authorization", "Bearer vera"}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body,
              HasSubstr("3 pages of this dashboard are open with this token, as many as may be: close some"));
  EXPECT_THAT(get("/api/v1/events", {{"Cookie", signed_in()}}).body, HasSubstr("with this token"))
      << "by a session as well";
  EXPECT_THAT(get("/api/v1/whoami", {{"Authorization", "Bearer vera"}}).json().value("no_events", ""),
              HasSubstr("as many as may be"));
  EXPECT_EQ(get("/api/v1/sweeps", {{"Authorization", "Bearer vera"}}).status, 200) << "she reads on";
  open(pages.emplace_back(server_->port()), "vera-2");
  EXPECT_TRUE(pages.back().read_until("event: heartbeat")) << "another token";
}

TEST_F(SignInTest, AFormOfAnotherSiteSignsNobodyInOrOut) {
  const std::string cookie = signed_in();
  for (const char* path : {"/sign-in", "/sign-out"}) {
    EXPECT_EQ(post(path, "token=vera", {{"Origin", "https://evil.example"}}).status, 403) << path;
    EXPECT_EQ(post(path, "token=vera", {{"Origin", "null"}}).status, 403) << path;
    for (const char* site : {"cross-site", "same-site"})
      EXPECT_EQ(post(path, "token=vera", {{"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", "navigate"}}).status,
                403)
          << path;
    EXPECT_EQ(get("/sign-out", {{"Cookie", cookie}}).status, 404) << "a link signs nobody out";
  }
  EXPECT_EQ(
      post("/sign-in", "token=vera", {{"Origin", "http://localhost"}, {"Sec-Fetch-Site", "same-origin"}})
          .status,
      303);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Cookie", cookie}}).status, 200);
}

TEST_F(SignInTest, ALinkFromAnotherSiteAsksOnceMoreFromHere) {
  const Reply reply = get("/sweeps/x", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}});
  EXPECT_EQ(reply.status, 200) << "its cookie was not sent: SameSite=Strict";
  EXPECT_EQ(reply.headers.at("refresh"), "0; url=/sweeps/x");
  EXPECT_EQ(get("/sweeps/x", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "navigate"}}).status,
            303);
}

TEST_F(SignInTest, OnlyFormsArePostedAndSmallOnes) {
  const std::string cookie = signed_in();
  EXPECT_EQ(post("/api/v1/sweeps", "x", {{"Cookie", cookie}}).status, 405);
  EXPECT_EQ(post("/", "x", {{"Cookie", cookie}}).status, 405);
  EXPECT_EQ(post("/sign-in", std::string(5000, 'x')).status, 413);
  EXPECT_EQ(
      client().raw("POST /sign-in HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").status,
      413);
}

TEST_F(SignInTest, FormsThatNeverEndKeepNobodyOut) {
  HttpClient stream = client();
  stream.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer vera\r\n\r\n");
  ASSERT_TRUE(stream.read_until("event: heartbeat"));
  std::list<HttpClient> slow;
  for (int i = 0; i < 200; ++i)
    slow.emplace_back(server_->port())
        .write("POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken=");
  EXPECT_EQ(get("/sign-in").status, 200);
  server_->publish({"study", 1});
  EXPECT_TRUE(stream.read_until("\"study\"")) << "who is at work stays";
}

TEST_F(SignInTest, WhoAsksTooOftenIsToldToWait) {
  start({.requests = 5, .requests_a_second = 0});
  HttpClient one = client();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(one.get("/healthz").status, 200);
  const Reply reply = client().get("/healthz");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
}

TEST(Rate, FillsWithTimeAndForgetsWhoWasQuietForLongest) {
  Rate rate{2, 1};
  Rate::Steady::time_point now{};
  EXPECT_TRUE(rate.take("a", now));
  EXPECT_TRUE(rate.take("a", now));
  EXPECT_FALSE(rate.take("a", now));
  EXPECT_TRUE(rate.take("b", now)) << "each has its own";
  now += 1s;
  EXPECT_TRUE(rate.take("a", now));
  EXPECT_FALSE(rate.take("a", now));
  for (int i = 0; i < 10'000; ++i) rate.take(std::to_string(i), now);
}

TEST(PeerOf, TakesAnIpv6NetworkForOne) {
  const auto peer = [](const char* address) { return peer_of(net::ip::make_address(address)); };
  EXPECT_EQ(peer("10.0.0.5"), "10.0.0.5");
  EXPECT_EQ(peer("::ffff:10.0.0.5"), "10.0.0.5");
  EXPECT_EQ(peer("2001:db8:1:2:3:4:5:6"), peer("2001:db8:1:2:aaaa::1"));
  EXPECT_NE(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
}

}  // namespace
}  // namespace abl::web
