// SPDX-License-Identifier: Apache-2.0
// The events of a sweep, as the server asks for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "storage/token_store.h"
#include "tests/views/reads_fixture.h"

namespace abl::views {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using storage::RunState;
using storage::sweep_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class SweepEventsTest : public ReadsTest {
 protected:
  json ask(const std::string& sweep, std::vector<std::pair<std::string, std::string>> parameters = {}) {
    return ReadsTest::ask("sweeps/*/events", std::move(parameters), sweep);
  }
  /// "Submit by ann", "completed a 0 run 1".
  static std::vector<std::string> words(const json& answer) {
    std::vector<std::string> all;
    for (const auto& event : answer.at("events")) {
      if (const std::string request = event.at("request"); !request.empty()) {
        all.push_back(request + " by " + event.at("who").get<std::string>());
        continue;
      }
      const std::string state = event.at("state");
      all.push_back(state.substr(std::string{"TRIAL_STATE_"}.size()) + " " +
                    event.at("row").get<std::string>() + " " + event.at("seed").get<std::string>() + " run " +
                    event.at("run").dump());
    }
    return all;
  }
  /// All pages of so many, one behind the other.
  std::vector<std::string> paged(const std::string& sweep, int count) {
    std::vector<std::string> all;
    std::string before;
    do {
      auto parameters = std::vector<std::pair<std::string, std::string>>{{"count", std::to_string(count)}};
      if (!before.empty()) parameters.emplace_back("before", before);
      const json answer = ask(sweep, parameters);
      EXPECT_LE(answer.at("events").size(), static_cast<std::size_t>(count));
      for (const auto& each : words(answer)) all.push_back(each);
      before = answer.at("next");
    } while (!before.empty() && all.size() < 1000);
    return all;
  }
  void submit_as(const std::string& who, storage::SweepText text) {
    text.sweep.owner = who;
    submit(text);
  }
  /// State changes have the time of the machine, as in a store that is in use.
  void note(const std::string& what, const std::string& target, const std::string& outcome = "ok") {
    storage::TokenStore{db}.note({.time = SystemClock{}.now() + 1h,
                                  .token = "",
                                  .who = "bob",
                                  .what = what,
                                  .target = target,
                                  .outcome = outcome});
  }
};

TEST_F(SweepEventsTest, OfASweepThatWaitsThereIsItsSubmission) {
  submit_as("ann", sweep_of("s", 1, 1));
  const json answer = ask("s");
  EXPECT_THAT(words(answer), ElementsAre("Submit by ann"));
  EXPECT_EQ(answer.at("next"), "");
}

TEST_F(SweepEventsTest, WhatWasAskedAndWhatTrialsCameTo) {
  submit_as("ann", sweep_of("s", 1, 2));
  end(run(1), RunState::kLost, "its worker was killed\nand more");
  complete(1, 0.5);
  note("PauseSweep (dashboard)", "s");
  note("ResumeSweep", "s", "a viewer may not");
  note("DrainWorker", "s");  // a worker of that name
  note("PauseSweep", "other");
  const json answer = ask("s");
  EXPECT_THAT(words(answer),
              ElementsAre("PauseSweep by bob", "COMPLETED a 0 run 2", "RUNNING a 0 run 2", "LEASED a 0 run 2",
                          "QUEUED a 0 run 1", "RUNNING a 0 run 1", "LEASED a 0 run 1", "Submit by ann"));
  EXPECT_EQ(answer.at("events")[4].at("reason"), "its worker was killed");
}

TEST_F(SweepEventsTest, ATrialOfTwoSweepsIsAnEventOfBoth) {
  submit_as("ann", sweep_of("s", 2, 1));
  submit_as("bob", sweep_of("t", 2, 1));
  submit_as("eve", sweep_of("u", 1, 1, "other"));
  complete(1, 0.5);
  EXPECT_THAT(words(ask("s")),
              ElementsAre("COMPLETED a 0 run 1", "RUNNING a 0 run 1", "LEASED a 0 run 1", "Submit by ann"));
  EXPECT_THAT(words(ask("t")),
              ElementsAre("COMPLETED a 0 run 1", "RUNNING a 0 run 1", "LEASED a 0 run 1", "Submit by bob"));
  EXPECT_THAT(words(ask("u")), ElementsAre("Submit by eve"));
}

TEST_F(SweepEventsTest, PagesHaveEachEventOnceWhateverTheClockSays) {
  submit_as("ann", sweep_of("s", 3, 2));
  for (const int trial : {1, 2, 3, 4}) complete(static_cast<storage::TrialId>(trial), 0.5);
  for (int i = 0; i < 5; ++i) note("PauseSweep", "s");
  for (const char* times :
       {"time_ms", "1750000000000", "1750000000000 - id", "1750000000000 + (id * 7) % 5"}) {
    db.execute(std::string{"UPDATE transition SET time_ms = "} + times);
    const auto all = words(ask("s", {{"count", "500"}}));
    EXPECT_THAT(all, SizeIs(4 * 3 + 5 + 1)) << times;
    for (const int count : {1, 2, 5, 18}) EXPECT_EQ(paged("s", count), all) << times << ", " << count;
  }
}

TEST_F(SweepEventsTest, WhatComesMeanwhileMovesNoPage) {
  submit_as("ann", sweep_of("s", 2, 1));
  complete(1, 0.5);
  const std::string next = ask("s", {{"count", "2"}}).at("next");
  complete(2, 0.5);
  note("PauseSweep", "s");
  EXPECT_THAT(words(ask("s", {{"before", next}})), ElementsAre("LEASED a 0 run 1", "Submit by ann"));
}

TEST_F(SweepEventsTest, OneReadLooksAtABoundedPartOfTheLog) {
  submit_as("ann", sweep_of("s", 1, 1));
  submit_as("ann", sweep_of("t", 1, 1, "other"));
  complete(1, 0.5);
  db.execute(R"sql(
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
      INSERT INTO transition (time_ms, trial_id, was, state, run_id, reason)
      SELECT (SELECT MAX(time_ms) FROM transition), 2, 'queued', 'leased', 1, '' FROM n)sql");
  const json first = ask("s");
  EXPECT_THAT(words(first), SizeIs(0));
  EXPECT_NE(first.at("next"), "");
  EXPECT_THAT(paged("s", 2),
              ElementsAre("COMPLETED a 0 run 1", "RUNNING a 0 run 1", "LEASED a 0 run 1", "Submit by ann"));
}

TEST_F(SweepEventsTest, WhatIsWrongIsNamed) {
  submit_as("ann", sweep_of("sharing", 1, 1));
  const auto [code, message] = storage::error_of([&] { ask("sharin"); });
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_THAT(message, HasSubstr("sharing"));
  for (const char* before :
       {"x", "1", "1-2", "1-2-", "1-2-3-4", "-1-2-3", "1-2-3 ", "99999999999999999999-1-1"})
    EXPECT_EQ(storage::error_of([&] {
                ask("sharing", {{"before", before}});
              }).first,
              Code::kInvalidArgument)
        << before;
  for (const char* count : {"0", "501", "x"})
    EXPECT_EQ(storage::error_of([&] {
                ask("sharing", {{"count", count}});
              }).first,
              Code::kInvalidArgument)
        << count;
}

}  // namespace
}  // namespace abl::views
