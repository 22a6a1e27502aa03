// SPDX-License-Identifier: Apache-2.0
#include "web/server/server.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <list>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/gzip.h"
#include "printing/selection.h"
#include "printing/table.h"
#include "storage/metric_store.h"
#include "tests/exposition.h"
#include "tests/web/demo_store.h"
#include "tests/web/http_client.h"
#include "views/comparison.h"
#include "views/read.h"
#include "views/views.h"
#include "web/server/sse.h"
#include "web/server/static_files.h"

namespace abl::web {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::string name = (std::filesystem::temp_directory_path() / "ablate-web-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    demo_.emplace(folder_ / "results.db");
    server_.emplace(options());
  }
  ~ServerTest() override {
    server_.reset();
    demo_.reset();
    std::filesystem::remove_all(folder_);
  }
  ServerOptions options() const { return {.store = folder_ / "results.db"}; }
  Reply get(const std::string& target, const std::map<std::string, std::string>& headers = {}) {
    return HttpClient{server_->port()}.get(target, headers);
  }
  void expect_error(const Reply& reply, int status, const std::string& code, const std::string& message) {
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    EXPECT_EQ(reply.json().at("code"), code);
    EXPECT_THAT(reply.json().at("message").get<std::string>(), HasSubstr(message));
  }

  std::filesystem::path folder_;
  std::optional<DemoStore> demo_;
  std::optional<Server> server_;
};

TEST_F(ServerTest, ListsSweepsWithTheirProgress) {
  const auto sweeps = get("/api/v1/sweeps").json().at("sweeps");
  ASSERT_EQ(sweeps.size(), 2);
  EXPECT_EQ(sweeps[0].at("name"), "msf-sharing");
  EXPECT_EQ(sweeps[0].at("state"), "SWEEP_STATE_ACTIVE");
  EXPECT_EQ(sweeps[0].at("trials").at("total"), 14);
  EXPECT_EQ(sweeps[0].at("trials").at("completed"), 10);
  EXPECT_EQ(sweeps[0].at("trials").at("running"), 2);
  EXPECT_EQ(sweeps[0].at("trials").at("failed"), 0) << "zeros are present";
}

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

TEST_F(ServerTest, ShowsASweepItsTrialsAndItsFile) {
  const auto detail = get("/api/v1/sweeps/msf-sharing").json();
  EXPECT_EQ(detail.at("trials").size(), 14);
  EXPECT_EQ(detail.at("trials")[0].at("row"), "orig");
  EXPECT_THAT(detail.at("text").get<std::string>(), StartsWith("ablate: 1\n"));
}

TEST_F(ServerTest, AnswersTheTableWithThePapersValuesBeside) {
  const auto table = get("/api/v1/sweeps/msf-sharing/table").json();
  EXPECT_EQ(table.at("baseline"), "orig");
  EXPECT_EQ(table.at("paper_heading"), "paper: ImageNet, 100 epochs");
  EXPECT_EQ(table.at("rows").size(), 7);
  const auto cell = table.at("rows")[1].at("cells")[0];
  EXPECT_EQ(cell.at("n"), 2);
  EXPECT_EQ(cell.at("paper"), "61.13");
  EXPECT_THAT(cell.at("text").get<std::string>(), HasSubstr(" ± "));
}

TEST_F(ServerTest, ListsRunsOfASweepOrATrial) {
  EXPECT_EQ(get("/api/v1/runs?sweep=msf-sharing").json().at("runs").size(), 13);
  EXPECT_EQ(get("/api/v1/runs?limit=2").json().at("runs").size(), 2);
  EXPECT_EQ(get("/api/v1/runs?sweep=msf-sharing&limit=2").json().at("left_out"), 11);
  EXPECT_EQ(get("/api/v1/runs?limit=1&before=4").json().at("runs")[0].at("id"), 3);
  const auto trial = get("/api/v1/runs?limit=1").json().at("runs")[0].at("trial").get<int>();
  EXPECT_EQ(get("/api/v1/runs?trial=" + std::to_string(trial)).json().at("runs")[0].at("trial"), trial);
}

TEST_F(ServerTest, ShowsARunAndThinsItsMetrics) {
  const std::string run = std::to_string(demo_->running().at(0));
  EXPECT_EQ(get("/api/v1/runs/" + run).json().at("summary").at("state"), "RUN_STATE_RUNNING");
  const auto series =
      get("/api/v1/metrics?run=" + run + "&name=train/loss&max_points=20").json().at("series");
  ASSERT_EQ(series.size(), 1);
  EXPECT_EQ(series[0].at("series").at("name"), "train/loss");
  EXPECT_LE(series[0].at("series").at("steps").size(), 24);
  EXPECT_EQ(series[0].at("series").at("steps").size(), series[0].at("series").at("values").size());
}

TEST_F(ServerTest, SendsALogFromAnOffsetOnAndSaysHowLongItIs) {
  const std::string address = "/api/v1/runs/" + std::to_string(demo_->running().at(0)) + "/log";
  const Reply whole = get(address);
  EXPECT_EQ(whole.headers.at("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(whole.headers.at("x-log-bytes"), std::to_string(whole.body.size()));
  EXPECT_THAT(whole.body, StartsWith("data: 4000 images"));
  EXPECT_EQ(get(address + "?offset=6").body, whole.body.substr(6));
  const Reply none = get(address + "?offset=" + whole.headers.at("x-log-bytes"));
  EXPECT_EQ(none.status, 200);
  EXPECT_EQ(none.body, "");
}

TEST_F(ServerTest, PrintsATableAsTheCommandLineDoes) {
  const std::string address = "/api/v1/sweeps/msf-sharing/printed";
  const auto table = views::table(demo_->db(), DemoStore::kSweep);
  for (const auto& [name, format] : printing::kTableFormats) {
    if (format == printing::TableFormat::kJson) continue;
    const Reply reply = get(address + "?format=" + name);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, printing::render_table(table, format)) << name;
  }
  EXPECT_EQ(get(address).body, get(address + "?format=text").body);
  const Reply latex = get(address + "?format=latex&caption=50%25&label=tab:msf");
  EXPECT_EQ(latex.headers.at("content-type"), "text/x-tex; charset=utf-8");
  EXPECT_EQ(latex.headers.at("content-disposition"), "attachment; filename=\"msf-sharing.tex\"");
  EXPECT_THAT(latex.body, HasSubstr("\\caption{50\\%}\n\\label{tab:msf}\n"));
  const Reply html = get(address + "?format=html");
  EXPECT_EQ(html.headers.at("content-disposition"), "attachment; filename=\"msf-sharing.html\"")
      << "a page of this origin would be of ours";
  EXPECT_EQ(get(address, {{"If-None-Match", get(address).headers.at("etag")}}).status, 304);
}

TEST_F(ServerTest, PrintsWhatIsChosenOfATable) {
  const std::string address = "/api/v1/sweeps/msf-sharing/printed";
  auto table = views::table(demo_->db(), DemoStore::kSweep);
  printing::select(table, {.sort = "-params", .without = {"share"}, .complete = true, .find = "msf"});
  ASSERT_GT(table.rows_size(), 0);
  ASSERT_LT(table.rows_size(), 7);
  EXPECT_EQ(
      get(address + "?format=markdown&sort=-params&without=share&complete=1&find=msf&columns=value").body,
      printing::render_table(table, printing::TableFormat::kMarkdown, nullptr,
                             {.shown = {protocol::Shown::kValue}, .flat = true}));
  auto whole = views::table(demo_->db(), DemoStore::kSweep);
  views::add_statistics(whole);
  EXPECT_EQ(get(address + "?statistics=1").body,
            printing::render_table(whole, printing::TableFormat::kText) + printing::statistics_text(whole));
}

TEST_F(ServerTest, RefusesToPrintWhatHasNoForm) {
  const auto refused = [&](const std::string& query, const std::string& why) {
    expect_error(get("/api/v1/sweeps/msf-sharing/printed?" + query), 400, "INVALID_ARGUMENT", why);
  };
  refused("format=json", "sweeps/NAME/table");
  refused("format=latx", "did you mean 'latex'?");
  refused("fromat=latex", "unknown parameter 'fromat'");
  refused("format=csv&columns=value", "csv has all that there is");
  refused("format=markdown&columns=valu", "did you mean 'value'?");
  refused("format=markdown&statistics=1", "expected the format text or csv");
  refused("format=markdown&caption=x", "expected the format latex or html");
  refused("format=latex&label=a%7D%5Cinput%7Bx", "label: expected letters, digits and any of");
  refused("sort=ac", "has no column 'ac'");
  refused("without=params&without=%27%3B--", "has no column");
  refused("complete=2", "complete: '2'");
  refused("sort=acc&sort=params", "is given 2 times");
  expect_error(get("/api/v1/sweeps/msf-sharin/printed"), 404, "NOT_FOUND", "msf-sharing");
}

TEST_F(ServerTest, ListsWorkers) {
  const auto workers = get("/api/v1/workers").json().at("workers");
  ASSERT_EQ(workers.size(), 3);
  EXPECT_EQ(workers[0].at("slots").size(), 1);
}

TEST_F(ServerTest, DescribesItself) {
  const Reply reply = get("/api");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(reply.json().at("openapi"), "3.1.0");
  for (const views::Read* read : views::all_reads()) {
    std::string path = "/api/v1/" + std::string{read->path};
    if (read->of) path.replace(path.find('*'), 1, "{" + std::string{read->of->name} + "}");
    EXPECT_TRUE(reply.json().at("paths").contains(path)) << path;
  }
  EXPECT_EQ(get("/api", {{"If-None-Match", reply.headers.at("etag")}}).status, 304);
  expect_error(get("/api?version=2"), 400, "INVALID_ARGUMENT", "this address takes none");
  expect_error(get("/api/v1/whoami?who=1"), 400, "INVALID_ARGUMENT", "this address takes none");
}

TEST_F(ServerTest, NamesWhatIsNotThere) {
  expect_error(get("/api/v1/sweeps/msf-sharin"), 404, "NOT_FOUND", "msf-sharing");
  expect_error(get("/api/v1/runs/4000000"), 404, "NOT_FOUND", "4000000");
  expect_error(get("/api/v1/runs/4000000/log"), 404, "NOT_FOUND", "4000000");
  expect_error(get("/api/v1/metrics?run=4000000"), 404, "NOT_FOUND", "4000000");
  const Reply nothing = get("/api/v1/nothing");
  for (const views::Read* read : views::all_reads())
    expect_error(nothing, 404, "NOT_FOUND", std::string{read->path.substr(0, read->path.find('/'))});
  EXPECT_THAT(nothing.json().at("message").get<std::string>(),
              testing::MatchesRegex(
                  "unknown path '/api/v1/nothing'; expected (.*, )?events, (.*, )*.* or .* below /api/v1/"));
  expect_error(get("/api/v2/sweeps"), 404, "NOT_FOUND", "/api/v1/");
  expect_error(get("/nothing/at/all"), 404, "NOT_FOUND", "nothing/at/all");
}

TEST_F(ServerTest, RefusesBadQueriesWithAReason) {
  expect_error(get("/api/v1/runs/abc"), 400, "INVALID_ARGUMENT", "run: 'abc' is not a whole number");
  expect_error(get("/api/v1/runs/0"), 400, "INVALID_ARGUMENT", "run: '0'");
  expect_error(get("/api/v1/runs?limit=-1"), 400, "INVALID_ARGUMENT", "limit: '-1'");
  expect_error(get("/api/v1/runs?swep=x"), 400, "INVALID_ARGUMENT", "expected sweep, trial, limit");
  expect_error(get("/api/v1/metrics"), 400, "INVALID_ARGUMENT", "parameter 'run' is missing");
  expect_error(get("/api/v1/metrics?run=1&max_points=many"), 400, "INVALID_ARGUMENT", "max_points: 'many'");
  expect_error(get("/api/v1/runs/1/log?offset=1e3"), 400, "INVALID_ARGUMENT", "offset: '1e3'");
  expect_error(get("/api/v1/search?query=stat:x"), 400, "INVALID_ARGUMENT", "did you mean 'state'?");
  expect_error(get("/api/v1/search?sort=%ff"), 400, "INVALID_ARGUMENT", "sort: unknown key");
  expect_error(get("/api/v1/search?query=acc%3E1;DROP%20TABLE%20trial"), 400, "INVALID_ARGUMENT",
               "acc: invalid number");
  expect_error(get("/api/v1/failures"), 400, "INVALID_ARGUMENT",
               "expected either ?sweep=NAME or, for all sweeps, ?since=MS");
  expect_error(get("/api/v1/failures?sweep=msf-sharin"), 404, "NOT_FOUND", "msf-sharing");
  expect_error(get("/api/v1/overview?since=0"), 400, "INVALID_ARGUMENT", "this address takes none");
  expect_error(get("/api/v1/sweeps/%zz"), 400, "INVALID_ARGUMENT", "hexadecimal");
}

TEST_F(ServerTest, TakesNamesAsNamesAndNeverAsPathsOrSql) {
  for (const char* target : {"/api/v1/sweeps/..%2F..%2Fetc%2Fpasswd", "/api/v1/sweeps/x'%20OR%20'1'='1",
                             "/api/v1/sweeps/%22%3B--"})
    EXPECT_EQ(get(target).status, 404) << target;
  for (const char* target :
       {"/../../../../etc/passwd", "/assets/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"}) {
    const Reply reply = get(target);
    EXPECT_EQ(reply.status, 404) << target;
    EXPECT_THAT(reply.body, Not(HasSubstr("root:"))) << target;
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

TEST_F(ServerTest, ARunThatIsNamedTwiceIsAnsweredOnce) {
  const std::string run = "run=" + std::to_string(demo_->running().at(0));
  std::string target = "/api/v1/metrics?name=lr&" + run;
  for (int i = 0; i < 500; ++i) target += "&" + run;
  EXPECT_EQ(get(target).json().at("series").size(), 1);
}

TEST_F(ServerTest, AnAnswerHasItsBounds) {
  expect_error(get("/api/v1/runs?limit=100000"), 400, "INVALID_ARGUMENT", "from 0 to 1000");
  expect_error(get("/api/v1/sweeps?count=501"), 400, "INVALID_ARGUMENT", "from 0 to 500");
  expect_error(get("/api/v1/sweeps/msf-sharing?count=1001"), 400, "INVALID_ARGUMENT", "from 0 to 1000");
  storage::Series series{.name = "long"};
  for (std::uint32_t step = 0; step < 260'000; ++step) {
    series.steps.push_back(step);
    series.values.push_back(step == 131'072 ? -7 : 1);
    series.times_ms.push_back(step);
  }
  const storage::RunId run = demo_->running().at(0);
  storage::MetricStore{demo_->db()}.append(run, {series});
  const std::string target = "/api/v1/metrics?name=long&run=" + std::to_string(run);
  expect_error(get(target), 400, "INVALID_ARGUMENT", "260000 metric points: an answer has 250000 at most");
  const auto thinned = get(target + "&max_points=1000000").json().at("series")[0].at("series");
  EXPECT_LE(thinned.at("values").size(), 250'000);
  EXPECT_THAT(thinned.at("values").get<std::vector<double>>(), testing::Contains(-7)) << "no peak is lost";
  std::string many = "/api/v1/metrics?max_points=2";
  for (int i = 1; i <= 1001; ++i) many += "&run=" + std::to_string(i);
  expect_error(get(many), 400, "INVALID_ARGUMENT", "1001 runs: an answer has the metrics of 1000 at most");
}

TEST_F(ServerTest, ACurveIsWholeOrInBucketsThatSayWhatStandsBehindThem) {
  const storage::RunId run = demo_->running().at(0);
  storage::Series series{.name = "long"};
  for (std::uint32_t step = 0; step < 100'000; ++step) {
    series.steps.push_back(step);
    series.values.push_back(step == 70'000   ? -7
                            : step == 70'001 ? std::numeric_limits<double>::quiet_NaN()
                                             : 1);
    series.times_ms.push_back(step);
  }
  storage::MetricStore{demo_->db()}.append(run, {series});
  const std::string target = "/api/v1/curves?name=long&width=100&run=" + std::to_string(run);
  const auto whole = get(target).json().at("curves").at(0);
  EXPECT_EQ(whole.at("said"), "100000");
  EXPECT_EQ(whole.at("points"), 100'000);
  EXPECT_EQ(whole.at("not_finite"), 1);
  EXPECT_EQ(whole.at("bucket_steps"), 1024);
  EXPECT_LE(whole.at("steps").size(), 500);
  EXPECT_EQ(whole.at("steps").size(), whole.at("values").size());
  EXPECT_TRUE(whole.at("times_ms").empty()) << "nobody asked for them";
  const auto values = whole.at("values").get<std::vector<nlohmann::json>>();
  EXPECT_THAT(values, testing::Contains(-7)) << "no spike is lost";
  EXPECT_THAT(values, testing::Contains("NaN"));
  EXPECT_EQ(whole.at("steps").front(), 0);
  EXPECT_EQ(whole.at("steps").back(), 99'999);
  const auto counts = whole.at("bucket_points").get<std::vector<std::uint32_t>>();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0U), 100'000U);
  EXPECT_EQ(whole.at("bucket_middles").size(), counts.size());
  EXPECT_EQ(whole.at("bucket_means").size(), counts.size());

  const auto part = get(target + "&from=69900&to=70099&times=1").json().at("curves").at(0);
  EXPECT_EQ(part.at("bucket_steps"), 0) << "every point of the range is there";
  EXPECT_EQ(part.at("points"), 200);
  EXPECT_EQ(part.at("said"), "100000");
  EXPECT_EQ(part.at("steps").size(), 200);
  EXPECT_EQ(part.at("times_ms").at(0), "69900");
  EXPECT_EQ(get(target + "&from=100000").json().at("curves").at(0).at("points"), 0) << "nothing new yet";
}

TEST_F(ServerTest, CurvesSayWhatTheirRunsStepsAre) {
  const storage::RunId run = demo_->running().at(0);
  const auto answer = get("/api/v1/curves?name=lr&run=" + std::to_string(run)).json();
  EXPECT_EQ(answer.at("left_out"), 0);
  ASSERT_EQ(answer.at("runs").size(), 1);
  const auto& known = answer.at("runs").at(0);
  EXPECT_EQ(known.at("run"), run);
  const std::vector<std::pair<const char*, const char*>> each{{"steps_per_epoch", "why_no_epochs"},
                                                              {"images_per_step", "why_no_images"},
                                                              {"gpus", "why_no_gpu_time"}};
  for (const auto& [value, why] : each)
    EXPECT_NE(known.contains(value), known.at(why) != "") << "it is known, or why it is not: " << value;
  EXPECT_GE(known.at("attempts").size(), 1u);
}

TEST_F(ServerTest, RunsWithTooManyPointsForOneReadAreLeftOutAndAskedForAgain) {
  demo_->db().execute(
      "UPDATE metric_summary SET count = 12000000, last_step = 12000000 WHERE metric_id = (SELECT id FROM "
      "metric WHERE name = 'lr')");
  const auto runs = demo_->running();
  const auto [one, other] = std::pair{std::to_string(runs.at(0)), std::to_string(runs.at(1))};
  const std::string target = "/api/v1/curves?name=lr&run=" + one;
  const auto answer = get(target + "&run=" + other).json();
  EXPECT_EQ(answer.at("left_out"), 1);
  EXPECT_EQ(answer.at("runs").size(), 1);
  EXPECT_EQ(get(target + "&to=1000&run=" + other).json().at("left_out"), 0) << "it is a matter of the range";
  EXPECT_EQ(get(target).json().at("left_out"), 0) << "one run is always read";
}

TEST_F(ServerTest, CurvesHaveTheirBounds) {
  const std::string run = "run=" + std::to_string(demo_->running().at(0));
  expect_error(get("/api/v1/curves"), 400, "INVALID_ARGUMENT", "parameter 'run' is missing");
  expect_error(get("/api/v1/curves?run=4000000"), 404, "NOT_FOUND", "4000000");
  expect_error(get("/api/v1/curves?width=0&" + run), 400, "INVALID_ARGUMENT", "width: '0'");
  expect_error(get("/api/v1/curves?width=10001&" + run), 400, "INVALID_ARGUMENT", "width: '10001'");
  expect_error(get("/api/v1/curves?from=-1&" + run), 400, "INVALID_ARGUMENT", "from: '-1'");
  expect_error(get("/api/v1/curves?from=9&to=8&" + run), 400, "INVALID_ARGUMENT", "to: 8 is before from: 9");
  expect_error(get("/api/v1/curves?max_points=8&" + run), 400, "INVALID_ARGUMENT", "max_points");
  std::string many = "/api/v1/curves?width=2";
  for (int i = 1; i <= 1001; ++i) many += "&run=" + std::to_string(i);
  expect_error(get(many), 400, "INVALID_ARGUMENT", "1001 runs: an answer has the curves of 1000 at most");
  EXPECT_TRUE(get("/api/v1/curves?name=nothing&" + run).json().at("curves").empty());
  EXPECT_TRUE(get("/api/v1/curves?name=%27%20OR%201&" + run).json().at("curves").empty());
}

TEST_F(ServerTest, AListOfRunsHasABoundOfMetricsToo) {
  demo_->db().execute(R"sql(
      INSERT INTO metric (name) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60000) SELECT 'm' || i FROM n;
      INSERT INTO metric_summary (run_id, metric_id, count, finite, min, max, sum, last, last_kind, last_step, min_step, max_step)
      SELECT ms.run_id, m.id, ms.count, ms.finite, ms.min, ms.max, ms.sum, ms.last, ms.last_kind,
        ms.last_step, ms.min_step, ms.max_step
      FROM metric m, (SELECT * FROM metric_summary LIMIT 1) ms WHERE m.name GLOB 'm[0-9]*')sql");
  const auto reply = get("/api/v1/runs?limit=1000");
  EXPECT_LT(reply.body.size(), 16u << 20);
  std::size_t metrics = 0, left_out = 0;
  const auto runs = reply.json().at("runs");
  for (const auto& run : runs) {
    metrics += run.at("metrics").size();
    left_out += run.at("metrics_left_out").get<std::size_t>();
  }
  EXPECT_LE(metrics, 30'000u);
  EXPECT_GT(left_out, 0u);
}

TEST_F(ServerTest, AnAnswerThatIsTooLongSaysToAskForLess) {
  demo_->db().execute("UPDATE trial SET config = printf('%.*c', 70000000, 'x') WHERE id = 1");
  expect_error(get("/api/v1/runs/1"), 400, "INVALID_ARGUMENT",
               "more than the 64 MiB that one may have: ask for less");
}

TEST_F(ServerTest, AnswersAPartAndSaysHowMuchIsMissing) {
  const auto detail = get("/api/v1/sweeps/msf-sharing?first=1&count=2").json();
  ASSERT_EQ(detail.at("trials").size(), 6);
  EXPECT_EQ(detail.at("trials")[0].at("row"), "orig") << "the baseline is always there";
  EXPECT_EQ(detail.at("trials")[2].at("row"), "a");
  EXPECT_EQ(detail.at("left_out"), 8);
  EXPECT_EQ(detail.at("summary").at("trials").at("total"), 14);
  const auto table = get("/api/v1/sweeps/msf-sharing/table?first=1&count=2").json();
  ASSERT_EQ(table.at("rows").size(), 3) << "the baseline is always there";
  EXPECT_EQ(table.at("rows")[0].at("id"), "orig");
  EXPECT_EQ(table.at("rows")[2].at("id"), "b");
  EXPECT_EQ(table.at("left_out"), 4);
  const auto sweeps = get("/api/v1/sweeps?first=1&count=1").json();
  EXPECT_EQ(sweeps.at("sweeps")[0].at("name"), "groups");
  EXPECT_EQ(sweeps.at("left_out"), 1);
  EXPECT_EQ(get("/api/v1/sweeps").json().at("left_out"), 0);
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

TEST_F(ServerTest, TellsEveryStreamWhatWasPublished) {
  HttpClient one{server_->port()}, two{server_->port()};
  for (HttpClient* client : {&one, &two}) {
    client->write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(client->read_until("retry: 2000\n\n"));
    EXPECT_THAT(client->seen(),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: text/event-stream\r\n")));
  }
  server_->publish({"msf \"sharing\"", 12});
  for (HttpClient* client : {&one, &two})
    EXPECT_TRUE(
        client->read_until("event: change\ndata: {\"sweep\":\"msf \\\"sharing\\\"\",\"run\":12}\nid: "));
}

/// The id of the last event in what a stream has sent.
std::string last_id(const std::string& seen) {
  const std::size_t at = seen.rfind("\nid: ") + 5;
  return seen.substr(at, seen.find('\n', at) - at);
}

TEST_F(ServerTest, AStreamGoesOnBehindTheLastEventThatItsReaderHad) {
  HttpClient first{server_->port()};
  first.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(first.read_until("\nid: "));
  server_->publish({"had", 1});
  ASSERT_TRUE(first.read_until("\"had\",\"run\":1}\nid: "));
  ASSERT_TRUE(first.read_until("\n\n"));
  const std::string place = last_id(first.seen());
  for (int i = 0; i < 3; ++i) server_->publish({"missed", 2});
  server_->publish({"missed", 3});
  ASSERT_TRUE(first.read_until("\"missed\",\"run\":3}"));
  for (const std::string& how :
       {"/api/v1/events?after=" + place + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "/api/v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: " + place + "\r\n\r\n"}) {
    HttpClient again{server_->port()};
    again.write("GET " + how);
    EXPECT_TRUE(
        again.read_until("event: change\ndata: {\"sweep\":\"missed\",\"run\":2}\n\n"
                         "event: change\ndata: {\"sweep\":\"missed\",\"run\":3}\nid: "));
    EXPECT_THAT(again.seen(), Not(HasSubstr("had")));
  }
}

TEST_F(ServerTest, AReaderOfAnotherProcessOrOfLongAgoIsToldThatAnythingMayHaveChanged) {
  for (const char* place : {"0-0", "12345678-1", "nonsense", "", "-1"}) {
    HttpClient client{server_->port()};
    client.write(std::string{"GET /api/v1/events?after="} + place + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(client.read_until("data: {\"sweep\":\"\",\"run\":0}\nid: ")) << place;
  }
  HttpClient new_one{server_->port()};
  new_one.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(new_one.read_until("\nid: "));
  EXPECT_THAT(new_one.seen(), Not(HasSubstr("event: change"))) << "it has not read anything yet";
  expect_error(get("/api/v1/events?since=1"), 400, "INVALID_ARGUMENT",
               "unknown parameter 'since': expected after");
}

TEST(Changes, KeepsEachChangeOnceAndForgetsTheOldest) {
  Changes changes;
  const std::string start = changes.place();
  for (int i = 0; i < 100'000; ++i) changes.add({"busy", 1});
  EXPECT_EQ(changes.since(start), (std::set<storage::Change>{{"busy", 1}}));
  for (std::uint32_t run = 0; run < Changes::kMost; ++run) changes.add({"many", run});
  EXPECT_EQ(changes.since(start), (std::set<storage::Change>{storage::Change{}}));
  const std::string place = changes.place();
  EXPECT_THAT(changes.since(place), IsEmpty());
  changes.add({"next", 7});
  EXPECT_EQ(changes.since(place), (std::set<storage::Change>{{"next", 7}}));
  EXPECT_EQ(changes.since(place + "0"), (std::set<storage::Change>{storage::Change{}})) << "of the future";
  EXPECT_EQ(changes.since(place + "x"), (std::set<storage::Change>{storage::Change{}}));
}

TEST_F(ServerTest, AStreamThatHasNothingToSaySaysThatItLives) {
  ServerOptions quick = options();
  quick.heartbeat = std::chrono::milliseconds{20};
  const Server server{quick};
  HttpClient client{server.port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int i = 0; i < 3; ++i)  // an event, which EventSource hands to the page; it never sees a comment
    EXPECT_TRUE(client.read_until("event: heartbeat\ndata: {\"every_ms\":20}\nid: "));
}

TEST_F(ServerTest, AStreamSaysAtOnceThatNothingCanBeStored) {
  ServerOptions slow = options();
  slow.heartbeat = std::chrono::hours{1};
  Server server{slow};
  HttpClient client{server.port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until("{\"every_ms\":3600000}\nid: "));
  server.set_trouble("the disk is full");
  EXPECT_TRUE(client.read_until(
      "event: heartbeat\ndata: {\"every_ms\":3600000,\"trouble\":\"the disk is full\"}\nid: "));
  server.set_trouble("");
  EXPECT_TRUE(client.read_until("{\"every_ms\":3600000}\nid: "));
}

TEST_F(ServerTest, ABurstOfTheSameChangeIsToldOnce) {
  HttpClient client{server_->port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until("retry: 2000\n\n"));
  for (int i = 0; i < 1000; ++i) server_->publish({"msf-sharing", 1});
  server_->publish({"last", 0});
  ASSERT_TRUE(client.read_until("\"last\""));
  std::size_t events = 0;
  for (std::size_t at = 0; (at = client.seen().find("event: change", at)) != std::string::npos; ++at)
    ++events;
  EXPECT_LT(events, 100);
}

TEST_F(ServerTest, WithoutAPublisherItSeesACommitOfAnotherProcess) {
  ServerOptions watching = options();
  watching.watch_store = true;
  const Server watcher{watching};
  HttpClient client{watcher.port()};
  client.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.read_until("retry: 2000\n\n"));
  demo_->advance(10);
  EXPECT_TRUE(client.read_until("data: {\"sweep\":\"\",\"run\":0}"));
}

TEST_F(ServerTest, AnswersWithWhatWasJustCommitted) {
  const std::string address = "/api/v1/runs/" + std::to_string(demo_->running().at(0));
  HttpClient client{server_->port()};
  const int before = client.get(address).json().at("summary").at("step");
  demo_->advance(20);
  EXPECT_EQ(client.get(address).json().at("summary").at("step"), before + 20);
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
