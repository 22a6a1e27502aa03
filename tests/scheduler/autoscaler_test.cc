// SPDX-License-Identifier: Apache-2.0
#include "scheduler/autoscaler.h"

#include "access/certificates.h"
#include "base/file.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using launchers::Pilot;
using launchers::PilotState;
using storage::Role;
using storage::TokenRecord;
using storage::TokenStore;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// A batch system that does as the test says.
class FakeLauncher final : public launchers::Launcher {
 public:
  std::vector<Pilot> list(const std::stop_token&) override {
    if (down) throw Error{Code::kUnavailable, "nobody answers"};
    return pilots;
  }
  std::string submit(const launchers::QueueConfig& queue, const std::optional<launchers::Pass>& pass,
                     const std::stop_token&) override {
    if (pass) passes.push_back(*pass);
    if (refusal) throw *refusal;
    const std::string id = std::to_string(++submitted);
    pilots.push_back({.id = id, .queue = queue.name});
    return id;
  }
  void cancel(const std::vector<Pilot>& which, const std::stop_token&) override {
    for (const Pilot& pilot : which) cancelled.push_back(pilot.id);
  }
  void remove(const launchers::QueueConfig&, const launchers::Leftovers& leftovers,
              const std::stop_token&) override {
    removed_passes.insert(removed_passes.end(), leftovers.passes.begin(), leftovers.passes.end());
    removed_workers.insert(removed_workers.end(), leftovers.workers.begin(), leftovers.workers.end());
  }
  std::optional<launchers::Room> room(const launchers::QueueConfig&) override { return place; }
  std::vector<launchers::News> news() override { return std::exchange(heard, {}); }
  void ends(std::size_t pilot, bool failed = false) {
    pilots.at(pilot).state = PilotState::kEnded;
    pilots.at(pilot).failed = failed;
    pilots.at(pilot).said = failed ? "FAILED" : "COMPLETED";
  }

  std::vector<Pilot> pilots;
  std::vector<launchers::Pass> passes;
  std::vector<std::string> cancelled, removed_passes, removed_workers;
  int submitted = 0;
  bool knows_all(const launchers::QueueConfig&) override { return !silent; }
  bool down = false, silent = false;
  std::optional<Error> refusal;
  std::optional<launchers::Room> place;
  std::vector<launchers::News> heard;
};

class AutoscalerTest : public CoordinatorTest {
 protected:
  AutoscalerTest() {
    coordinator->note_needs();
    write_file(folder / "ca.crt", access::make_certificates({"head"}, SystemClock{}.now()).authority);
    begin();
  }
  ~AutoscalerTest() override { autoscaler.reset(); }

  FleetOptions options() const {
    return {.config = {.scheduler = "head:7071",
                       .ca = (folder / "ca.crt").string(),
                       .queues = {{.name = queue,
                                   .max_workers = 1,
                                   .time_limit = 1h,
                                   .idle_timeout = 1h,
                                   .gpus = gpus,
                                   .program = "/p",
                                   .home = "/h"}}},
            .tls = true,
            .list_every = 0ms};
  }
  /// Also again, as after a restart of the scheduler.
  void begin() {
    auto fake = launcher ? std::make_unique<FakeLauncher>(*launcher) : std::make_unique<FakeLauncher>();
    autoscaler.reset();
    std::vector<std::unique_ptr<launchers::Launcher>> all;
    FakeLauncher* const now_there = fake.get();
    all.push_back(std::move(fake));
    autoscaler = std::make_unique<Autoscaler>(options(), folder / "results.db", *coordinator, access, clock,
                                              std::move(all));
    launcher = now_there;
  }
  void look(std::chrono::seconds later = 1s) {
    pass(later);
    autoscaler->look({});
  }
  std::vector<TokenRecord> tokens() {
    return writer->call([](storage::Database& db) { return TokenStore{db}.list(); });
  }
  /// As its worker does with its pass.
  void join(const std::string& pass, const std::string& worker) {
    writer->call([&](storage::Database& db) {
      TokenStore{db}.join(pass,
                          {.record = {.id = "bbbbbbbbbbbb", .name = worker}, .sha256 = sha256_hex(worker)},
                          clock.now());
      return true;
    });
  }
  std::string events() {
    std::string text;
    const auto status = autoscaler->status();
    for (const auto& event : status.events()) text += event.text() + "\n";
    return text;
  }

  AccessControl access{*writer, clock};
  std::string queue = "q";
  int gpus = 0;
  FakeLauncher* launcher = nullptr;
  std::unique_ptr<Autoscaler> autoscaler;
};

TEST_F(AutoscalerTest, APilotGetsAJoinTokenOfItsOwnThatIsRevokedWithItsWorkersWhenItHasEnded) {
  submit(sweep_of("s", 1, 1));
  look();
  ASSERT_THAT(launcher->passes, SizeIs(1));
  const launchers::Pass pilots_pass = launcher->passes.front();
  EXPECT_THAT(pilots_pass.authorities, HasSubstr("BEGIN CERTIFICATE"));
  ASSERT_THAT(tokens(), SizeIs(1));
  const TokenRecord token = tokens().front();
  EXPECT_EQ(token.id, pilots_pass.id);
  EXPECT_EQ(token.role, Role::kJoin);
  EXPECT_EQ(token.expires, clock.now() + 7 * 24h + launchers::kTimeToConnect);
  const std::string kept = read_file(folder / "results.db.fleet.json");
  EXPECT_THAT(kept, AllOf(HasSubstr(pilots_pass.id), Not(HasSubstr(pilots_pass.token))));
  EXPECT_THAT(events(), Not(HasSubstr(pilots_pass.token)));

  launcher->pilots[0].state = PilotState::kRunning;
  join(pilots_pass.id, "q-1");
  FakeWorker worker = connect({.name = "q-1"});
  look();
  EXPECT_THAT(launcher->removed_passes, ElementsAre(pilots_pass.id)) << "it is used";
  EXPECT_FALSE(tokens().front().revoked) << "the worker works with its own";

  launcher->ends(0);
  look();
  for (int second = 0; second < 31; ++second) {
    heartbeat(worker, {1});
    pass(1s);
  }
  look();
  const auto is_revoked = [&](const std::string& id) {
    return writer->call([&](storage::Database& db) { return TokenStore{db}.find(id)->revoked.has_value(); });
  };
  for (const std::string& id : {pilots_pass.id, std::string{"bbbbbbbbbbbb"}})
    EXPECT_FALSE(is_revoked(id)) << "its worker has last words";
  disconnect(worker);
  look();
  for (const std::string& id : {pilots_pass.id, std::string{"bbbbbbbbbbbb"}}) EXPECT_TRUE(is_revoked(id));
  EXPECT_THAT(read_file(folder / "results.db.fleet.json"), Not(HasSubstr(pilots_pass.id)));
}

TEST_F(AutoscalerTest, ATokenOfAPilotThatEndsWithoutJoiningIsRevokedAlsoAfterARestart) {
  submit(sweep_of("s", 1, 1));
  look();
  begin();
  look();
  EXPECT_FALSE(tokens().front().revoked) << "its pilot waits";
  launcher->pilots.clear();
  begin();
  look();
  look(31s);
  EXPECT_TRUE(tokens().back().revoked);
  EXPECT_THAT(launcher->removed_passes, Contains(tokens().back().id));
}

TEST_F(AutoscalerTest, ATokenIsKeptAfterARestartWhileAMachineThatMayHaveItsPilotIsSilent) {
  submit(sweep_of("s", 1, 1));
  look();
  launcher->pilots[0].state = PilotState::kRunning;
  look();
  const auto found = std::exchange(launcher->pilots, {});
  launcher->silent = true;
  launcher->place = launchers::Room{.pilots = 0, .why = "it is silent"};
  begin();
  look();
  look(5min);
  EXPECT_FALSE(tokens().front().revoked);
  launcher->pilots = found, launcher->silent = false;
  look();
  look(31s);
  EXPECT_FALSE(tokens().front().revoked) << "its machine answers again, and it is there";
  launcher->pilots.clear();
  look(2min);
  look(31s);
  EXPECT_TRUE(tokens().front().revoked);
}

TEST_F(AutoscalerTest, WhatAPilotTookThatIsFoundAgainIsCountedOnceAlsoAfterARestart) {
  gpus = 1;
  begin();
  submit(sweep_of("s", 1, 1));
  look();
  ASSERT_EQ(launcher->submitted, 1);
  Pilot& pilot = launcher->pilots.at(0);
  pilot.state = PilotState::kRunning, pilot.ran = 1h;
  look();
  const auto hours = [&] { return autoscaler->status().queues(0).gpu_hours(); };
  EXPECT_DOUBLE_EQ(hours(), 1);
  pilot.state = PilotState::kEnded, pilot.perhaps = true;  // its machine does not answer
  look();
  look();
  EXPECT_DOUBLE_EQ(hours(), 1);
  begin();
  look();
  EXPECT_DOUBLE_EQ(hours(), 1);
  Pilot& again = launcher->pilots.at(0);
  again.state = PilotState::kRunning, again.perhaps = false, again.ran = 3h;
  look();
  EXPECT_DOUBLE_EQ(hours(), 3) << "it was there all the time";
  begin();
  look();
  EXPECT_DOUBLE_EQ(hours(), 3);
  launcher->pilots.at(0).state = PilotState::kEnded, launcher->pilots.at(0).ran = 4h;
  look();
  look();
  EXPECT_DOUBLE_EQ(hours(), 4);
}

TEST_F(AutoscalerTest, ATokenIsKeptWhileNobodyKnowsWhetherThereIsAPilotThatHasIt) {
  launcher->refusal = Error{Code::kUnavailable, "sbatch did not answer"};
  submit(sweep_of("s", 1, 1));
  look();
  look(40s);
  for (const TokenRecord& token : tokens()) EXPECT_FALSE(token.revoked);
  launcher->refusal = Error{Code::kInvalidArgument, "no such partition"};
  look(10min);
  const std::string refused = tokens().front().id;
  look(40s);
  for (const TokenRecord& token : tokens()) EXPECT_EQ(token.revoked.has_value(), token.id == refused);
}

TEST_F(AutoscalerTest, SubmissionsThatNobodyAnswersAreTriedMoreAndMoreSeldom) {
  launcher->refusal = Error{Code::kUnavailable, "sbatch did not answer"};
  submit(sweep_of("s", 1, 1));
  for (int minute = 0; minute < 60; ++minute) look(60s);
  EXPECT_LT(launcher->passes.size(), 20u) << "each is a token";
  EXPECT_THAT(autoscaler->status().queues(0).paused(), IsEmpty());
  launcher->refusal.reset();
  look(6min);
  EXPECT_EQ(launcher->submitted, 1);
}

TEST_F(AutoscalerTest, AWorkerWhosePilotsSubmissionWasNotAnsweredKeepsItsToken) {
  launcher->refusal = Error{Code::kUnavailable, "sbatch did not answer"};
  submit(sweep_of("s", 1, 1));
  look();
  const std::string pass = launcher->passes.at(0).id;
  join(pass, "q-77");
  FakeWorker worker = connect({.name = "q-77"});
  launcher->pilots.push_back({.id = "77", .queue = "q", .state = PilotState::kRunning});
  look();
  clock.pass(8 * 24h);
  heartbeat(worker, {1});
  for (int second = 0; second < 60; ++second) {
    heartbeat(worker, {1});
    look();
  }
  const auto is_revoked = [&] {
    return writer->call(
        [&](storage::Database& db) { return TokenStore{db}.find("bbbbbbbbbbbb")->revoked.has_value(); });
  };
  EXPECT_FALSE(is_revoked());
  launcher->ends(0);
  disconnect(worker);
  look();
  look(40s);
  look();
  EXPECT_TRUE(is_revoked()) << "half a minute after its pilot's end";
}

TEST_F(AutoscalerTest, ATokenOfAQueueThatIsNamedNoMoreEndsWhenItsWorkerHasBeenAwayForLong) {
  submit(sweep_of("s", 1, 1));
  look();
  const std::string pass = launcher->passes.at(0).id;
  join(pass, "q-1");
  queue = "other";
  begin();
  FakeWorker worker = connect({.name = "q-1"});
  look();
  look(11min);
  const auto is_revoked = [&] {
    return writer->call(
        [&](storage::Database& db) { return TokenStore{db}.find("bbbbbbbbbbbb")->revoked.has_value(); });
  };
  begin();
  look(30s);
  EXPECT_FALSE(is_revoked());
  look(11min);
  EXPECT_TRUE(is_revoked());
  EXPECT_THAT(read_file(folder / "results.db.fleet.json"), Not(HasSubstr(pass)));
}

TEST_F(AutoscalerTest, APilotThatWaitsForLongerThanItsTokenIsGoodIsGivenUpAlsoAfterARestart) {
  submit(sweep_of("s", 1, 1));
  look();
  clock.pass(4 * 24h);
  begin();
  look();
  EXPECT_THAT(launcher->cancelled, IsEmpty());
  clock.pass(3 * 24h);
  look();
  EXPECT_THAT(launcher->cancelled, ElementsAre("1"));
  EXPECT_THAT(events(), HasSubstr("which is start_deadline"));
}

TEST_F(AutoscalerTest, ThreePilotsThatComeToNothingPauseTheQueueUntilAPersonResumesIt) {
  submit(sweep_of("s", 1, 1));
  for (std::size_t i = 0; i < 3; ++i) {
    look(10min);
    ASSERT_THAT(launcher->pilots, SizeIs(i + 1));
    launcher->ends(i, true);
    look();
  }
  EXPECT_THAT(autoscaler->status().queues(0).paused(), HasSubstr("3 pilots in a row came to nothing"));
  begin();
  look(10min);
  EXPECT_EQ(launcher->submitted, 3);
  autoscaler->resume("q");
  look();
  EXPECT_EQ(launcher->submitted, 4);
}

TEST_F(AutoscalerTest, NothingIsThoughtGoneWhileTheLauncherDoesNotAnswer) {
  submit(sweep_of("s", 1, 1));
  look();
  launcher->down = true;
  look(2min);
  EXPECT_THAT(autoscaler->status().trouble(), HasSubstr("nobody answers"));
  EXPECT_EQ(autoscaler->status().queues(0).pilots_size(), 1);
  EXPECT_FALSE(tokens().front().revoked);
  EXPECT_EQ(launcher->submitted, 1);
}

TEST_F(AutoscalerTest, FoldersOfEndedPilotsGoButForTheLastOnesAndTheLastFailures) {
  submit(sweep_of("s", 1, 1));
  for (std::size_t i = 0; i < 24; ++i) {
    look(10min);
    ASSERT_EQ(launcher->submitted, i + 1) << events();
    launcher->pilots[i].state = PilotState::kRunning;
    FakeWorker worker = connect({.name = "q-" + std::to_string(i + 1), .data = {}});
    look();
    launcher->ends(i, i == 1);
    disconnect(worker);
    look();
  }
  look();
  EXPECT_THAT(launcher->removed_workers, ElementsAre("q-1", "q-3", "q-4")) << "the second had failed";
}

TEST(FleetOptions, AreCheckedBeforeAnythingIsOpened) {
  const auto refusal = [](const FleetOptions& options) -> std::string {
    try {
      check(options);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal({.config = {.scheduler = "head:1"}, .tls = true}), HasSubstr("ca: missing"));
  EXPECT_THAT(refusal({.config = {.scheduler = "head:1", .ca = "system"}}), HasSubstr("has no TLS"));
  EXPECT_THAT(refusal({.config = {.scheduler = "head:1", .ca = "/absent/ca.crt"}, .tls = true}),
              HasSubstr("/absent/ca.crt"));
  EXPECT_EQ(refusal({.config = {.scheduler = "head:1", .ca = "system"}, .tls = true}), "");
  EXPECT_EQ(refusal({.config = {.scheduler = "unix:/run/s.sock"}, .tls = true}), "") << "the owner's socket";
}

TEST_F(AutoscalerTest, AsksForNoMorePilotsThanTheLauncherHasAPlaceForAndPassesOnWhatItSays) {
  submit(sweep_of("s", 1, 1));
  launcher->place = launchers::Room{.pilots = 0, .why = "w1 does not answer"};
  launcher->heard = {{.queue = queue, .text = "w1 does not answer: refused"}};
  look();
  EXPECT_EQ(launcher->submitted, 0);
  const auto status = autoscaler->status();
  EXPECT_THAT(status.queues(0).why(), HasSubstr("more wanted, but w1 does not answer"));
  EXPECT_EQ(status.events(0).text(), "w1 does not answer: refused");
  launcher->place->pilots = 1;
  look();
  EXPECT_EQ(launcher->submitted, 1);
}

}  // namespace
}  // namespace abl::scheduler
