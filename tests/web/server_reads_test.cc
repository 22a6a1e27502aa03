// SPDX-License-Identifier: Apache-2.0
// What is read of a store over HTTP: the answers and their bounds.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "printing/selection.h"
#include "printing/table.h"
#include "storage/metric_store.h"
#include "storage/token_store.h"
#include "tests/web/server_fixture.h"
#include "views/comparison.h"
#include "views/read.h"
#include "views/views.h"
#include "web/server/sse.h"
#include "web/server/static_files.h"

namespace abl::web {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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

TEST_F(ServerTest, PrintsTheRowsThatStandSomewhere) {
  const std::string address = "/api/v1/sweeps/msf-sharing/printed?format=csv&places=";
  auto table = views::table(demo_->db(), DemoStore::kSweep);
  const auto csv = [&](std::set<std::string> only) {
    auto some = table;
    printing::select(some, {.only = std::move(only)});
    return printing::render_table(some, printing::TableFormat::kCsv);
  };
  const auto id = [&](int place) { return table.rows(place).id(); };
  EXPECT_EQ(get(address + "1-2,5").body, csv({id(1), id(2), id(5)}));
  EXPECT_EQ(get(address).body, csv({})) << "the brush keeps none";
  EXPECT_EQ(get(address + "0-6&complete=1").body,
            get("/api/v1/sweeps/msf-sharing/printed?format=csv&complete=1").body);
  std::uint32_t digest = 2'166'136'261;
  for (const char byte : id(0) + "\n" + id(3) + "\n")
    digest = (digest ^ std::uint32_t{static_cast<unsigned char>(byte)}) * 16'777'619u;
  EXPECT_EQ(get(address + fmt::format("0,3&ids={:08x}", digest)).body, csv({id(0), id(3)}));
  expect_error(get(address + fmt::format("0,4&ids={:08x}", digest)), 400, "INVALID_ARGUMENT",
               "has other rows at these places now");
  for (const char* wrong : {"7", "0-7", "2,1", "1,1", "3-2", ",", "1,", "a", "-1", "1;2", "99999999999"})
    expect_error(get(address + wrong), 400, "INVALID_ARGUMENT", "places: expected");
}

TEST_F(ServerTest, AnswersTheFileOfARevision) {
  const std::string address = "/api/v1/sweeps/msf-sharing/text";
  const auto only = get(address).json();
  EXPECT_EQ(only.at("text"), get("/api/v1/sweeps/msf-sharing").json().at("text"));
  EXPECT_EQ(only.at("revision").at("revision"), 1);
  expect_error(get(address + "?revision=2"), 404, "NOT_FOUND", "it was never extended");
  expect_error(get(address + "?revision=-1"), 400, "INVALID_ARGUMENT", "revision");
  demo_->extend(DemoStore::kSweep);
  EXPECT_EQ(get(address + "?revision=1").json().at("text"), only.at("text"));
  EXPECT_EQ(get(address + "?revision=2").json().at("revision").at("by"), "ann");
  EXPECT_EQ(get(address).json(), get(address + "?revision=3").json()) << "the newest";
  EXPECT_EQ(get(address + "?revision=0").json(), get(address).json());
  expect_error(get(address + "?revision=4"), 404, "NOT_FOUND", "it has 1 to 3");
}

TEST_F(ServerTest, SaysWhatIsKeptForHowLong) {
  for (int i = 0; i < 3; ++i) storage::TokenStore{demo_->db()}.note({.who = "sue", .what = "Submit"});
  const auto places = get("/api/v1/retention").json().at("places");
  ASSERT_GE(places.size(), 3);
  EXPECT_EQ(places[0].at("name"), "Results file");
  EXPECT_GT(std::stoull(places[0].at("bytes").get<std::string>()), 4096U);
  int audits = 0;
  for (const auto& kept : places[0].at("kept")) {
    if (kept.at("what") != "Audit") continue;
    ++audits;
    EXPECT_EQ(kept.at("used"), "3");
    EXPECT_EQ(kept.at("limit"), "100000");
  }
  EXPECT_EQ(audits, 1);
  for (const auto& place : places)
    for (const auto& each : place.at("kept"))
      EXPECT_THAT(each.at("rule").get<std::string>(), Not(testing::IsEmpty()));
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

TEST_F(ServerTest, WhatACurveHasGainedComesInTheBucketsThatItsReaderHas) {
  const storage::RunId run = demo_->running().at(0);
  std::vector<storage::Series> metrics{{.name = "long"}, {.name = "short"}};
  for (std::uint32_t step = 0; step < 100'000; ++step) {
    for (storage::Series& series : metrics) {
      if (series.name == "short" && step % 100 != 0) continue;
      series.steps.push_back(step);
      series.values.push_back(1);
      series.times_ms.push_back(step);
    }
  }
  storage::MetricStore{demo_->db()}.append(run, metrics);
  const std::string target =
      "/api/v1/curves?name=long&name=short&width=100&from=98304&run=" + std::to_string(run);
  const auto ask = [&](std::string_view more) { return get(target + std::string{more}).json().at("curves"); };
  const auto gained = ask("&bucket=1024");
  EXPECT_EQ(gained.at(0).at("bucket_steps"), 1024);
  EXPECT_EQ(gained.at(0).at("points"), 100'000 - 98'304);
  EXPECT_EQ(gained.at(0).at("bucket_means").size(), 2) << "98304 = 96 × 1024";
  EXPECT_EQ(gained.at(1).at("bucket_steps"), 0) << "of 1,000 points its reader has each";
  EXPECT_EQ(gained.at(1).at("steps").size(), 16) << "98400 to 99900";
  EXPECT_EQ(ask("&bucket=4").at(0).at("bucket_steps"), 32) << "no narrower than the width has room for";
  expect_error(get(target + "&bucket=1000"), 400, "INVALID_ARGUMENT", "bucket: 1000 is not a power of two");
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

}  // namespace
}  // namespace abl::web
