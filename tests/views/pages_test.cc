// SPDX-License-Identifier: Apache-2.0
// The reads that pages are made of, as the server asks them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "storage/annotation_store.h"
#include "storage/worker_store.h"
#include "sweeps/paper_sweeps.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/whole_file.h"
#include "tests/views/reads_fixture.h"

namespace abl::views {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using storage::RunState;
using storage::sweep_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PagesTest : public ReadsTest {
 protected:
  std::vector<std::string> names(const json& list, const char* key = "name") {
    std::vector<std::string> all;
    for (const auto& each : list) all.push_back(each.at(key));
    return all;
  }
  std::vector<std::string> found(const std::string& query, const std::string& sort = "") {
    return names(ask("search", {{"query", query}, {"sort", sort}}).at("sweeps"));
  }
  void connect(const std::string& name,
               const std::string& slots = R"([{"index":0,"device":"cpu","name":"1 thread"}])") {
    storage::WorkerStore{db}.upsert({.name = name,
                                     .host = name + "-host",
                                     .instance = "1",
                                     .version = "1",
                                     .slots_json = slots,
                                     .data_json = R"(["cifar10"])",
                                     .result_version = 1,
                                     .connected = true,
                                     .last_heartbeat = now});
  }
  /// Fails for good.
  void fail(storage::TrialId trial, const std::string& reason) {
    db.execute("UPDATE trial SET max_retries = 0 WHERE id = " + std::to_string(trial));
    ASSERT_EQ(end(run(trial), RunState::kFailed, reason), storage::TrialState::kFailed);
  }
};

TEST_F(PagesTest, EveryPageOfAnEmptyStoreIsEmpty) {
  EXPECT_THAT(ask("overview").at("sweeps"), IsEmpty());
  EXPECT_THAT(ask("overview").at("running"), IsEmpty());
  EXPECT_THAT(found(""), IsEmpty());
  EXPECT_THAT(ask("failures", {{"since", "0"}}).at("groups"), IsEmpty());
  EXPECT_THAT(ask("queue").at("next"), IsEmpty());
  EXPECT_THAT(ask("papers").at("tables"), SizeIs(testing::Ge(30u)));
}

TEST_F(PagesTest, TheOverviewHasWhatRunsWaitsAndIsInUse) {
  connect("alice");
  connect(
      "bob",
      R"([{"index":0,"device":"cuda:0","name":"NVIDIA H200"},{"index":1,"device":"cuda:1","name":"NVIDIA H200"}])");
  submit(sweep_of("s", 2, 2));  // trials 1 2 (seed 0), 3 4
  const auto id = run(1);
  metrics.append(id, {{.name = "x",
                       .steps = {10, 20},
                       .values = {1, 1},
                       .times_ms = {now.time_since_epoch().count(), (now + 1s).time_since_epoch().count()}}});
  storage::QueueStore{db}.set_waiting(1, "all 3 slots are busy");
  const json overview = ask("overview");
  EXPECT_THAT(names(overview.at("sweeps")), ElementsAre("s"));
  ASSERT_THAT(overview.at("running"), SizeIs(1));
  const json& running = overview.at("running")[0];
  EXPECT_EQ(running.at("sweep"), "s");
  EXPECT_EQ(running.at("row"), "a");
  EXPECT_EQ(running.at("step"), 20);
  EXPECT_EQ(running.at("total_steps"), 100);
  EXPECT_DOUBLE_EQ(running.at("eta_seconds").get<double>(), 8) << "80 steps, ten a second";
  ASSERT_THAT(overview.at("waiting"), SizeIs(1));
  EXPECT_EQ(overview.at("waiting")[0].at("reason"), "all 3 slots are busy");
  EXPECT_EQ(overview.at("waiting")[0].at("trials"), 3);
  EXPECT_EQ(overview.at("waiting")[0].at("estimated"), false);
  EXPECT_EQ(overview.at("workers_connected"), 2);
  EXPECT_THAT(names(overview.at("slots")), ElementsAre("1 thread", "NVIDIA H200"));
  EXPECT_EQ(overview.at("slots")[1].at("slots"), 2);
}

TEST_F(PagesTest, ManyTrialsThatWaitAreAnEstimate) {
  submit(sweep_of("s", 26, 20));
  storage::QueueStore{db}.set_waiting(1, "no worker is connected");
  db.execute(
      "UPDATE trial SET waiting = 'backs off' WHERE id IN (SELECT trial_id FROM sweep_trial WHERE row < 13)");
  const json waiting = ask("overview").at("waiting");
  ASSERT_THAT(waiting, SizeIs(2));
  EXPECT_EQ(waiting[0].at("estimated"), true);
  EXPECT_EQ(waiting[0].at("trials").get<int>() + waiting[1].at("trials").get<int>(), 520);
  EXPECT_NEAR(waiting[0].at("trials").get<int>(), 260, 60);
}

TEST_F(PagesTest, AnOverviewAndTheQueueCostTheSameHoweverManyTrialsThereAre) {
  const auto cost = [&](const char* path) {
    const auto before = db.steps();
    ask(path);
    return db.steps() - before;
  };
  submit(sweep_of("s", 26, 250, "s"));
  const auto overview = cost("overview"), queue = cost("queue");
  submit(sweep_of("t", 26, 1000, "t"));
  EXPECT_LT(cost("overview"), 3 * overview) << "two sweeps in place of one";
  EXPECT_LT(cost("queue"), 3 * queue);
}

TEST_F(PagesTest, AnOverviewAtRestStaysTheSame) {
  connect("alice");
  submit(sweep_of("s", 2, 2));
  for (const storage::TrialId trial : {1, 2})
    trials.end(run(trial), {.state = RunState::kCompleted, .took = 100s}, now);
  const json forecast = ask("overview").at("sweeps")[0].at("forecast");
  ASSERT_TRUE(forecast.contains("complete"));
  EXPECT_EQ(forecast.at("complete").get<std::string>().find('.'), std::string::npos) << "no part of a second";
  EXPECT_EQ(std::fmod(forecast.at("seconds").get<double>(), 5), 0);
}

TEST_F(PagesTest, SweepsAreFoundByWhatIsKnownOfThem) {
  submit(sweep_of("msf-1", 2, 1, "x"));  // trials 1, 2
  submit(sweep_of("msf-2", 3, 1, "y"));  // 3, 4, 5
  submit(sweep_of("xcit", 1, 2, "z"));   // 6, 7
  complete(1, 70);
  complete(2, 80);
  fail(3, "exit code 1");
  EXPECT_THAT(found(""), ElementsAre("xcit", "msf-2", "msf-1"));
  EXPECT_THAT(found("msf"), ElementsAre("msf-2", "msf-1"));
  EXPECT_THAT(found("state:completed"), ElementsAre("msf-1"));
  EXPECT_THAT(found("failed>0"), ElementsAre("msf-2"));
  EXPECT_THAT(found("", "rows"), ElementsAre("xcit", "msf-1", "msf-2"));
  EXPECT_THAT(found("", "-done"), ElementsAre("msf-1", "xcit", "msf-2"));
}

TEST_F(PagesTest, AColumnIsMetByTheMeanOfARow) {
  submit(sweep_of("s", 2, 2));  // a: trials 1 and 3, b: 2 and 4
  complete(1, 70);
  complete(3, 80);
  EXPECT_THAT(found("acc>74"), ElementsAre("s")) << "75 is the mean of row a";
  EXPECT_THAT(found("acc>76"), IsEmpty()) << "though a seed has 80";
  EXPECT_THAT(found("-acc>76"), ElementsAre("s"));
  complete(2, std::nan(""));
  EXPECT_THAT(found("acc>76"), IsEmpty());
  submit(sweep_of("none", 1, 1, "n"));
  EXPECT_THAT(found("-acc>76"), ElementsAre("s")) << "without a value it is neither";
}

TEST_F(PagesTest, SearchGoesOnBehindASweepThatMatchesNoMore) {
  for (int i = 0; i < 5; ++i) submit(sweep_of("s" + std::to_string(i), 1, 1, "h" + std::to_string(i)));
  json page = ask("search", {{"query", "state:active"}, {"count", "2"}});
  EXPECT_THAT(names(page.at("sweeps")), ElementsAre("s4", "s3"));
  EXPECT_EQ(page.at("matching"), 5);
  EXPECT_EQ(page.at("next"), "s3");
  complete(4, 1);  // of s3
  page = ask("search", {{"query", "state:active"}, {"count", "2"}, {"after", "s3"}});
  EXPECT_THAT(names(page.at("sweeps")), ElementsAre("s2", "s1"));
  page = ask("search", {{"query", "state:active"}, {"count", "2"}, {"after", "s1"}});
  EXPECT_THAT(names(page.at("sweeps")), ElementsAre("s0"));
  EXPECT_EQ(page.at("next"), "");
  EXPECT_THROW(ask("search", {{"after", "gone"}}), Error);
}

TEST_F(PagesTest, WhatIsArchivedIsCountedAndFoundWhereItIsAskedFor) {
  for (int i = 0; i < 4; ++i) submit(sweep_of("s" + std::to_string(i), 1, 1, "h" + std::to_string(i)));
  storage::AnnotationStore annotations{db};
  complete(2, 1);
  annotations.set_archived(sweeps.get("s1").id, true, now);
  annotations.set_pinned(sweeps.get("s0").id, true);
  json list = ask("sweeps", {{"listed", "1"}, {"count", "1"}});
  EXPECT_THAT(names(list.at("sweeps")), ElementsAre("s0", "s3")) << "pinned ones beside them";
  EXPECT_EQ(list.at("next"), "s3");
  EXPECT_EQ(list.at("archived"), 1);
  EXPECT_EQ(list.at("left_out"), 1);
  list = ask("sweeps", {{"listed", "1"}, {"count", "1"}, {"after", "s3"}});
  EXPECT_THAT(names(list.at("sweeps")), ElementsAre("s2"));
  EXPECT_EQ(list.at("next"), "");
  EXPECT_THROW(ask("sweeps", {{"listed", "1"}, {"first", "1"}}), Error);
  EXPECT_THAT(names(ask("sweeps").at("sweeps")), ElementsAre("s3", "s2", "s1", "s0"));

  EXPECT_THAT(found(""), ElementsAre("s0", "s3", "s2"));
  EXPECT_THAT(found("", "-created"), ElementsAre("s3", "s2", "s0"));
  EXPECT_EQ(ask("search", {{"query", "state:completed"}}).at("archived"), 1);
  EXPECT_EQ(ask("search", {{"query", "state:active"}}).at("archived"), 0) << "it would not match";
  EXPECT_EQ(ask("search", {{"query", "acc>0"}}).at("archived"), 1);
  EXPECT_THAT(found("is:archived"), ElementsAre("s1"));
  EXPECT_EQ(ask("search", {{"query", "is:archived"}}).at("archived"), 0);
  EXPECT_THAT(found("-is:archived"), ElementsAre("s0", "s3", "s2"));
}

TEST_F(PagesTest, FailuresStandTogetherByTheirFirstLine) {
  submit(sweep_of("s", 4, 1));
  fail(1, "out of memory: 2048 MiB\nmore words");
  fail(2, "out of memory: 4096 MiB");
  fail(3, "<img src=x onerror=alert(1)>");
  const json failures = ask("failures", {{"sweep", "s"}});
  EXPECT_EQ(failures.at("trials"), 3);
  ASSERT_THAT(failures.at("groups"), SizeIs(2));
  const json& memory = failures.at("groups")[0];
  EXPECT_EQ(memory.at("trials"), 2);
  EXPECT_EQ(memory.at("line"), "out of memory: 4096 MiB") << "of the newest";
  EXPECT_THAT(names(memory.at("examples"), "row"), ElementsAre("b", "a"));
  EXPECT_EQ(memory.at("examples")[0].at("run"), 2);
  EXPECT_EQ(failures.at("groups")[1].at("line"), "<img src=x onerror=alert(1)>");
}

TEST_F(PagesTest, WhatFailedRowsSetAlikeIsSaid) {
  auto text = sweep_of("s", 4, 1);
  for (int row = 0; row < 4; ++row)
    text.sweep.rows[static_cast<std::size_t>(row)].set_json =
        row < 2 ? R"({"groups":"8","lr":"0.1"})" : R"({"groups":"2","lr":"0.1"})";
  submit(text);
  fail(1, "too many groups");
  fail(2, "too many groups");
  complete(3, 1);
  const json failures = ask("failures", {{"sweep", "s"}});
  EXPECT_EQ(failures.at("groups")[0].at("common"), json({"groups=8"})) << "lr is 0.1 in every row";
  ASSERT_THAT(failures.at("levels"), SizeIs(2));
  EXPECT_EQ(failures.at("levels")[0].at("value"), "8");
  EXPECT_EQ(failures.at("levels")[0].at("failed"), 2);
  EXPECT_EQ(failures.at("levels")[0].at("trials"), 2);
  EXPECT_EQ(failures.at("levels")[1].at("trials"), 4) << "of lr=0.1";
}

TEST_F(PagesTest, FailuresSinceATimeAreThoseThatStillFail) {
  submit(sweep_of("s", 2, 1));
  fail(1, "exit code 1");
  fail(2, "exit code 2");
  EXPECT_EQ(ask("failures", {{"since", "0"}}).at("trials"), 2);
  const auto later = (SystemClock{}.now() + 1h).time_since_epoch().count();
  EXPECT_EQ(ask("failures", {{"since", std::to_string(later)}}).at("trials"), 0);
  sweeps.retry(1, "a", now, storage::as_due);
  EXPECT_EQ(ask("failures", {{"since", "0"}}).at("trials"), 1);
  EXPECT_THROW(ask("failures"), Error);
  EXPECT_THROW(ask("failures", {{"since", "-1"}}), Error);
  EXPECT_THROW(ask("failures", {{"since", "0"}, {"sweep", "s"}}), Error);
}

TEST_F(PagesTest, TheQueueGoesByPriorityThenByWhoHasFewestSlots) {
  auto high = sweep_of("high", 1, 1, "h"), vera = sweep_of("vera", 2, 2, "v"),
       ada = sweep_of("ada", 2, 1, "a");
  high.sweep.priority = 5;
  vera.sweep.owner = "vera";
  ada.sweep.owner = "ada";
  submit(high);  // trial 1
  submit(vera);  // 2 3 (seed 0), 4 5
  submit(ada);   // 6 7
  run(2);        // vera has a slot
  const json queue = ask("queue");
  EXPECT_EQ(queue.at("waiting"), 6);
  EXPECT_THAT(names(queue.at("sweeps"), "sweep"), ElementsAre("high", "ada", "vera"));
  EXPECT_EQ(queue.at("sweeps")[2].at("slots"), 1);
  std::vector<int> trials;
  for (const auto& trial : queue.at("next")) trials.push_back(trial.at("trial"));
  EXPECT_THAT(trials, ElementsAre(1, 6, 3, 7, 4, 5))
      << "ada draws level, then both take turns, the older sweep first";
}

TEST_F(PagesTest, ASweepThatRunsAsManyAsItMayHasNoNextTrial) {
  submit(sweep_of("s", 3, 1));
  sweeps.set_max_running(1, 1);
  run(1);
  const json queue = ask("queue");
  EXPECT_EQ(queue.at("sweeps")[0].at("waiting"), 2);
  EXPECT_THAT(queue.at("next"), IsEmpty());
}

TEST_F(PagesTest, OfALongSweepTheFirstTrialIsNotLookedFor) {
  submit(sweep_of("s", 26, 200));  // 5200 trials
  const json queue = ask("queue");
  ASSERT_THAT(queue.at("next"), SizeIs(50));
  EXPECT_EQ(queue.at("next")[0].at("trial"), 0);
  EXPECT_THAT(queue.at("notes")[0].get<std::string>(), HasSubstr("5000 trials"));
}

TEST_F(PagesTest, PapersHaveTheirSweepsAtEveryScale) {
  submit(sweep_of("msf-table-1", 1, 1, "a"));
  submit(sweep_of("msf-table-1-cifar", 1, 1, "b"));
  submit(sweep_of("msf-table-10", 1, 1, "c"));
  const json papers = ask("papers");
  for (const json& table : papers.at("tables")) {
    const bool is_it = table.at("paper") == "msf" && table.at("table") == "table-1";
    EXPECT_EQ(table.at("stored").size(), is_it ? 2u : 0u) << table;
    if (!is_it) continue;
    EXPECT_THAT(names(table.at("stored")), ElementsAre("msf-table-1-cifar", "msf-table-1"));
    EXPECT_EQ(table.at("title"), "Projection sharing in the MSF-transformer");
    EXPECT_EQ(table.at("rows"), 18);
    EXPECT_EQ(table.at("trained"), 18);
  }
}

TEST_F(PagesTest, TheFileOfAPapersTableIsWhatTheCommandLineReads) {
  const auto file = sweeps::paper_sweep("msf/table-1").file;
  const json full = ask("papers/*", {{"table", "table-1"}}, "msf");
  EXPECT_EQ(full.at("file").at("text"), read_file(file)) << "it has no rows of others: as it is written";
  EXPECT_EQ(full.at("file").at("folder"), std::filesystem::canonical(file.parent_path()).string());
  EXPECT_THAT(full.at("scales"), ElementsAre("cifar", "demo"));
  EXPECT_EQ(ask("papers/*", {{"table", "table-1"}, {"scale", "full"}}, "msf"), full);
  for (const auto& table : sweeps::paper_sweeps())
    for (const auto& scale : sweeps::scales_of(table.file))
      EXPECT_EQ(
          ask("papers/*", {{"table", table.table}, {"scale", scale}}, table.paper).at("file").at("text"),
          sweeps::read_whole(table.file, scale).text)
          << table.name();
  const auto demo = sweeps::read_whole(file, "demo");
  EXPECT_EQ(sweeps::parse_sweep(demo.text, demo.path, demo.folder).name, "msf-table-1-demo");
}

TEST_F(PagesTest, APapersTableThatIsNotThereIsNamedWithTheNearest) {
  const auto refusal = [&](const char* paper, const char* table, const char* scale) {
    return storage::error_of([&] { ask("papers/*", {{"table", table}, {"scale", scale}}, paper); });
  };
  EXPECT_THAT(refusal("msv", "table-1", ""),
              testing::Pair(Code::kNotFound, HasSubstr("did you mean 'msf'?")));
  EXPECT_THAT(refusal("msf", "table-l", ""),
              testing::Pair(Code::kNotFound, HasSubstr("did you mean 'msf/table-")));
  EXPECT_THAT(refusal("msf", "table-1", "dem"),
              testing::Pair(Code::kNotFound, HasSubstr("did you mean 'demo'?")));
  EXPECT_THAT(refusal("msf", "", ""), testing::Pair(Code::kInvalidArgument, HasSubstr("table")));
  for (const char* written : {"../msf/table-1", "scales", "/etc/passwd", "table-1.yaml/.."})
    EXPECT_THAT(refusal("msf", written, ""), testing::Pair(Code::kNotFound, HasSubstr("unknown table")));
  EXPECT_THAT(refusal("..", "papers", ""), testing::Pair(Code::kNotFound, HasSubstr("unknown paper")));
}

}  // namespace
}  // namespace abl::views
