// SPDX-License-Identifier: Apache-2.0
// Connections, what is refused, health, and how it starts and stops.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <list>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/gzip.h"
#include "storage/metric_store.h"
#include "tests/exposition.h"
#include "tests/web/server_fixture.h"
#include "web/server/sse.h"

namespace abl::web {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A program with something to say, that may be unwell.
class FakeMonitor final : public Monitor {
 public:
  void expose(Exposition& exposition) const override { exposition.gauge("fake", "A figure.").add(7); }
  std::vector<Ailment> ailments() const override {
    if (well) return {};
    return {{"store", "disk \"full\""}, {"writer", "stuck"}};
  }
  std::atomic<bool> well = true;
};

TEST_F(ServerTest, FiguresAreWrittenForPrometheus) {
  get("/api/v1/sweeps/msf-sharing");
  get("/api/v1/sweeps/no-such-sweep");
  get("/api/v1/metrics");
  get("/api/v1/%ff/x");
  get("/somewhere/else");
  get("/api/v1/sweeps", {{"Host", "evil.example"}});
  const Reply reply = get("/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  auto samples = test::parse_exposition(reply.body);
  const auto answers = [&](const std::string& route, const std::string& code) {
    return samples.at("ablate_http_requests_total{route=\"" + route + "\",code=\"" + code + "\"}");
  };
  EXPECT_EQ(answers("/api/v1/sweeps/*", "2xx"), 1);
  EXPECT_EQ(answers("/api/v1/sweeps/*", "4xx"), 1);
  EXPECT_EQ(answers("/api/v1/metrics", "4xx"), 1) << "curves, not /metrics";
  EXPECT_EQ(answers("/api", "4xx"), 1) << "what people send is no label";
  EXPECT_EQ(answers("/", "4xx"), 1);
  EXPECT_EQ(answers("refused", "4xx"), 1);
  EXPECT_EQ(answers("/metrics", "2xx"), 0) << "this one is still under way";
  EXPECT_EQ(samples.at(R"(ablate_http_request_seconds_count{route="/api/v1/sweeps/*"})"), 2);
  EXPECT_EQ(samples.at("ablate_http_event_streams"), 0);
  EXPECT_GT(samples.at("process_resident_memory_bytes"), 0);
}

TEST_F(ServerTest, HealthSaysWhatIsWrong) {
  FakeMonitor monitor;
  Server server{{.store = folder_ / "results.db", .version = "1.2.3", .monitor = &monitor}};
  HttpClient client{server.port()};
  Reply reply = client.get("/healthz");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.json(), (nlohmann::json{{"status", "ok"}, {"version", "1.2.3"}}));
  monitor.well = false;
  reply = client.get("/healthz?verbose");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.json().at("status"), "unhealthy");
  EXPECT_EQ(reply.json().at("reasons")[0],
            (nlohmann::json{{"check", "store"}, {"message", "disk \"full\""}}));
  EXPECT_EQ(reply.json().at("reasons").size(), 2U);
  auto samples = test::parse_exposition(client.get("/metrics").body);
  EXPECT_EQ(samples.at("fake"), 7);
  EXPECT_EQ(samples.at(R"(ablate_http_requests_total{route="/healthz",code="5xx"})"), 1);
  EXPECT_EQ(samples.at(R"(ablate_build_info{version="1.2.3"})"), 1);
}

TEST_F(ServerTest, AResultsFileThatIsGoneMakesItsDashboardUnhealthy) {
  Server server{{.store = folder_ / "results.db", .watch_store = true}};
  EXPECT_EQ(HttpClient{server.port()}.get("/healthz").status, 200);
  std::filesystem::rename(folder_ / "results.db", folder_ / "elsewhere.db");
  EXPECT_EQ(HttpClient{server.port()}.get("/healthz").status, 503);
}

TEST_F(ServerTest, AScraperOfThisMachineMayAskAndAPageOfAnotherSiteMayNot) {
  const std::string own = "127.0.0.1:" + std::to_string(server_->port());
  for (const char* path : {"/metrics", "/healthz"}) {
    EXPECT_EQ(get(path, {{"Host", own},
                         {"User-Agent", "Prometheus/2.42.0"},
                         {"X-Prometheus-Scrape-Timeout-Seconds", "10"}})
                  .status,
              200);
    EXPECT_EQ(get(path, {{"Host", "localhost"}}).status, 200);
    EXPECT_EQ(get(path, {{"Host", "gpu-head:8571"}}).status, 403);
    EXPECT_EQ(get(path, {{"Origin", "http://evil.example"}}).status, 403);
    EXPECT_EQ(get(path, {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}).status, 403);
    EXPECT_EQ(HttpClient{server_->port()}.send("POST", path).status, 405);
    const Reply head = HttpClient{server_->port()}.send("HEAD", path);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, "");
  }
}

TEST_F(ServerTest, RefusesForeignHostsAndOrigins) {
  expect_error(get("/api/v1/sweeps", {{"Host", "evil.example"}}), 403, "PERMISSION_DENIED",
               "'evil.example' is refused");
  expect_error(get("/", {{"Host", "evil.example:80"}}), 403, "PERMISSION_DENIED", "refused");
  expect_error(get("/api/v1/events", {{"Origin", "http://evil.example"}}), 403, "PERMISSION_DENIED",
               "Origin");
  EXPECT_EQ(get("/api/v1/sweeps", {{"Host", "localhost"}, {"Origin", "http://localhost"}}).status, 200);
  EXPECT_EQ(HttpClient{server_->port()}.raw("GET / HTTP/1.1\r\n\r\n").status, 403) << "no Host at all";
}

TEST_F(ServerTest, RefusesWhatAPageOfAnotherSiteAsksFor) {
  expect_error(get("/api/v1/sweeps", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}}), 403,
               "PERMISSION_DENIED", "cross-site");
  expect_error(get("/api/v1/sweeps", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}), 403,
               "PERMISSION_DENIED", "cross-site");
  expect_error(get("/api/v1/events", {{"Sec-Fetch-Site", "same-site"}}), 403, "PERMISSION_DENIED",
               "same-site");
  EXPECT_EQ(get("/sweeps/x", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}}).status, 200);
  EXPECT_EQ(get("/api/v1/sweeps", {{"Sec-Fetch-Site", "same-origin"}}).status, 200);
}

TEST_F(ServerTest, ShowsABrowserThatThereIsNoSuchPage) {
  if (embedded_app().files.empty()) GTEST_SKIP() << "the pages are not in this build";
  const Reply reply = get("/nothing/at/all", {{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}});
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.headers.at("content-type"), "text/html; charset=utf-8");
}

/// A store whose curves are endless work: what reads `point` never ends by itself.
class EndlessCurvesTest : public ServerTest {
 protected:
  EndlessCurvesTest() {
    demo_->db().execute("ALTER TABLE point RENAME TO point_kept");
    demo_->db().execute(R"sql(
        CREATE VIEW point AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
        SELECT -x AS run_id, -x AS metric_id, -x AS step, 1.0 AS value, NULL AS kind, -x AS time_ms FROM n)sql");
  }
  void ask_for_curves(HttpClient& client) {
    client.write("GET /api/v1/metrics?run=" + std::to_string(demo_->running().at(0)) +
                 " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
};

TEST_F(EndlessCurvesTest, WhatNobodyWaitsForIsStopped) {
  for (int i = 0; i < 8; ++i) {
    HttpClient client{server_->port()};
    ask_for_curves(client);
  }  // each leaves without its answer
  EXPECT_EQ(get("/api/v1/workers").status, 200);
  EXPECT_EQ(get("/api/v1/sweeps/msf-sharing/table").status, 200) << "both of their threads are free again";
}

TEST_F(EndlessCurvesTest, QuickRequestsDoNotWaitForSlowOnesAndTooManyAreRefused) {
  std::list<HttpClient> waiting;
  for (int i = 0; i < 64; ++i) ask_for_curves(waiting.emplace_back(server_->port()));
  for (;;) {  // the last ones may not have been read yet
    HttpClient probe{server_->port()};
    ask_for_curves(probe);
    if (!probe.has_answer(std::chrono::milliseconds{100})) continue;
    ASSERT_TRUE(probe.read_until("try again in a moment")) << probe.seen();
    EXPECT_THAT(probe.seen(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
    break;
  }
  EXPECT_EQ(get("/api/v1/workers").status, 200);
  EXPECT_EQ(get("/api/v1/runs/1").status, 200);
  server_.reset();  // ends although none of them ever would
}

TEST_F(ServerTest, StoppedReadersCostNobodyElseAnAnswer) {
  storage::Series series{.name = "long"};
  for (std::uint32_t step = 0; step < 240'000; ++step) {
    series.steps.push_back(step);
    series.values.push_back(1.0 / (1 + step));
    series.times_ms.push_back(1'700'000'000'000 + step);
  }
  const storage::RunId run = demo_->running().at(0);
  storage::MetricStore{demo_->db()}.append(run, {series});
  const std::string target = "/api/v1/metrics?name=long&run=" + std::to_string(run);
  std::list<HttpClient> stopped;
  for (int i = 0; i < 10; ++i)  // about 10 MB each, and never read
    stopped.emplace_back(server_->port()).write("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  Reply reply = get(target);
  while (reply.status == 503) reply = get(target);  // until the others count as stopped
  EXPECT_EQ(reply.json().at("series")[0].at("series").at("steps").size(), 240'000);
  EXPECT_EQ(get("/api/v1/sweeps").status, 200);
}

TEST_F(ServerTest, OnlyReads) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
    const Reply reply = HttpClient{server_->port()}.send(method, "/api/v1/sweeps");
    EXPECT_EQ(reply.status, 405) << method;
    EXPECT_EQ(reply.headers.at("allow"), "GET, HEAD") << method;
  }
}

TEST_F(ServerTest, ReadsNoBodyAndNoEndlessHeader) {
  const std::map<std::string, std::string> body{{"Content-Length", "1000000000"}};
  EXPECT_EQ(HttpClient{server_->port()}.send("POST", "/api/v1/sweeps", body).status, 405);
  EXPECT_EQ(get("/api/v1/sweeps", body).status, 413);
  EXPECT_EQ(get("/api/v1/sweeps", {{"X-Long", std::string(70'000, 'x')}}).status, 431);
  EXPECT_EQ(HttpClient{server_->port()}.raw("no HTTP at all\r\n\r\n").status, 400);
}

TEST_F(ServerTest, AnswersHeadLikeGetWithoutTheBody) {
  HttpClient client{server_->port()};
  const Reply head = client.send("HEAD", "/api/v1/sweeps");
  const Reply full = client.get("/api/v1/sweeps");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(full.body.size()));
}

TEST_F(ServerTest, KeepsAConnectionForTheNextRequest) {
  HttpClient client{server_->port()};
  EXPECT_EQ(client.get("/api/v1/sweeps").status, 200);
  EXPECT_EQ(client.get("/api/v1/sweeps/none").status, 404);
  EXPECT_EQ(client.get("/api/v1/workers", {{"Connection", "close"}}).status, 200);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(ServerTest, SendsHeadersThatKeepABrowserSafe) {
  for (const char* target : {"/", "/api/v1/sweeps", "/api/v1/none"}) {
    const Reply reply = get(target);
    EXPECT_THAT(reply.headers.at("content-security-policy"),
                AllOf(HasSubstr("default-src 'self'"), HasSubstr("frame-ancestors 'none'"),
                      Not(HasSubstr("unsafe"))));
    EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
  }
  EXPECT_EQ(get("/api/v1/sweeps").headers.at("cache-control"), "private, no-cache");
  EXPECT_EQ(get("/api/v1/none").headers.at("cache-control"), "no-store");
}

TEST_F(ServerTest, SendsWhatChangedAlone) {
  const Reply first = get("/api/v1/workers");
  const Reply again = get("/api/v1/workers", {{"If-None-Match", first.headers.at("etag")}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(again.headers.at("etag"), first.headers.at("etag"));
  EXPECT_EQ(get("/api/v1/workers", {{"If-None-Match", "\"another\""}}).status, 200);
}

TEST_F(ServerTest, TellsAPageWhatIsOtherThanBefore) {
  const storage::RunId run = demo_->running().at(0);
  const std::string address = "/api/v1/metrics?run=" + std::to_string(run);
  const Reply first = get(address, {{"A-IM", "json-patch"}});
  storage::Series series{.name = "val/loss"};
  series.steps = {99'999};
  series.values = {0.5};
  series.times_ms = {1};
  storage::MetricStore{demo_->db()}.append(run, {series});
  const Reply next =
      get(address,
          {{"A-IM", "json-patch"}, {"If-None-Match", first.headers.at("etag")}, {"Accept-Encoding", "gzip"}});
  EXPECT_EQ(next.status, 226);
  EXPECT_EQ(next.headers.at("im"), "json-patch");
  EXPECT_EQ(next.headers.at("content-type"), "application/json-patch+json");
  const bool is_compressed = next.headers.contains("content-encoding");
  const auto patch = nlohmann::json::parse(is_compressed ? gunzip(next.body, 1 << 20) : next.body);
  EXPECT_EQ(nlohmann::json::parse(first.body).patch(patch), nlohmann::json::parse(get(address).body));
}

TEST_F(ServerTest, CompressesForWhoTakesIt) {
  const std::string table = "/api/v1/sweeps/msf-sharing/table";
  const Reply plain = get(table), compressed = get(table, {{"Accept-Encoding", "br, gzip"}});
  EXPECT_EQ(compressed.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(compressed.headers.at("content-length"), std::to_string(compressed.body.size()));
  EXPECT_EQ(gunzip(compressed.body, 64 << 20), plain.body);
  EXPECT_LT(compressed.body.size(), plain.body.size() / 2);
  const Reply head = HttpClient{server_->port()}.raw(
      "HEAD " + table + " HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n", true);
  EXPECT_EQ(head.headers.at("content-length"), compressed.headers.at("content-length"));
}

TEST_F(ServerTest, ServesTheAppAndSendsItOnlyOnce) {
  const Reply page = get("/sweeps/msf-sharing");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  if (embedded_app().files.empty()) GTEST_SKIP() << "the pages are not in this build";
  const Reply again = get("/", {{"If-None-Match", page.headers.at("etag")}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
}

TEST_F(ServerTest, StopsWhileStreamsAndConnectionsAreOpen) {
  HttpClient stream{server_->port()}, idle{server_->port()};
  stream.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(stream.read_until("retry: 2000\n\n"));
  EXPECT_EQ(idle.get("/api/v1/sweeps").status, 200);
  server_.reset();
  EXPECT_FALSE(stream.read_until("never sent"));
  EXPECT_TRUE(idle.closed_by_server());
}

TEST_F(ServerTest, SaysThatAPortIsInUse) {
  ServerOptions same = options();
  same.port = server_->port();
  try {
    const Server second{same};
    FAIL() << "two servers on one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("port " + std::to_string(server_->port()) +
                                        " on 127.0.0.1 is in use: choose another"));
  }
}

TEST_F(ServerTest, RefusesToStartWithoutAStoreOrAnAddress) {
  EXPECT_THROW(Server{{.store = folder_ / "none.db"}}, Error);
  ServerOptions wrong = options();
  wrong.address = "example";
  EXPECT_THROW(Server{wrong}, Error);
}

TEST_F(ServerTest, SaysWhereItIs) {
  EXPECT_EQ(server_->url(), "http://127.0.0.1:" + std::to_string(server_->port()) + "/");
}

}  // namespace
}  // namespace abl::web
