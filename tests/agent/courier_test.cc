// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tests/agent/fixtures.h"
#include "worker/agent/depot_link.h"

namespace abl::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// A depot that notes what it gets.
class CourierTest : public testing::Test {
 protected:
  ~CourierTest() override { courier.reset(); }

  void start(Milliseconds every) {
    courier = std::make_unique<Courier>(folder / "runs",
                                        [this](const ForRun& run, const std::filesystem::path& file,
                                               const std::string& sha256, std::uint64_t bytes, const GoOn&) {
                                          const std::scoped_lock lock{mutex};
                                          ++calls;
                                          if (fails && calls <= fails_until) throw Error{*fails, "not now"};
                                          const std::string content = read_file(file);
                                          EXPECT_EQ(sha256_hex(content), sha256);
                                          EXPECT_EQ(content.size(), bytes);
                                          EXPECT_EQ(run.token, "token");
                                          brought.push_back(content);
                                          return true;
                                        });
    courier->set_every(every);
    courier->set_connected(true);
  }
  ablate::v1::Checkpoint checkpoint(std::uint32_t step, const std::string& content) {
    const auto file = folder.path() / "runs/107/1" / ("checkpoint-" + std::to_string(step));
    write_text(file, content);
    ablate::v1::Checkpoint said;
    said.set_step(step);
    said.set_path(file);
    said.set_sha256(sha256_hex(content));
    return said;
  }
  void wrote(const ablate::v1::Checkpoint& said) { courier->wrote({.run = 7, .token = "token"}, said); }
  bool bring(bool best = false, std::chrono::milliseconds patience = kPatience) {
    return courier->bring(7, best, patience, [] { return true; });
  }
  std::vector<std::string> all() {
    const std::scoped_lock lock{mutex};
    return brought;
  }

  TemporaryFolder folder;
  std::mutex mutex;
  int calls = 0, fails_until = 1000;
  std::optional<Code> fails;
  std::vector<std::string> brought;
  std::unique_ptr<Courier> courier;
};

TEST_F(CourierTest, OnlyTheNewestIsBroughtWhenTheRunEnds) {
  start(1h);
  wrote(checkpoint(10, "ten"));
  wrote(checkpoint(20, "twenty"));
  EXPECT_THAT(all(), IsEmpty()) << "its time has not come";
  EXPECT_TRUE(bring());
  EXPECT_THAT(all(), ElementsAre("twenty"));
  EXPECT_TRUE(bring()) << "it is there";
  EXPECT_THAT(all(), ElementsAre("twenty"));
}

TEST_F(CourierTest, ItIsBroughtWhileTheRunGoesOn) {
  start(1ms);
  wrote(checkpoint(10, "ten"));
  EXPECT_TRUE(eventually([&] { return all().size() == 1; }));
  wrote(checkpoint(20, "twenty"));
  EXPECT_TRUE(eventually([&] { return all().size() == 2; }));
}

TEST_F(CourierTest, WhatTheSchedulerHasNotHeardOfYetIsTriedAgain) {
  start(1h);
  fails = Code::kNotFound, fails_until = 2;
  wrote(checkpoint(10, "ten"));
  EXPECT_TRUE(bring());
  EXPECT_THAT(all(), ElementsAre("ten"));
  EXPECT_EQ(calls, 3);
}

TEST_F(CourierTest, AFullDepotHoldsUpNoEnd) {
  start(1h);
  fails = Code::kResourceExhausted;
  wrote(checkpoint(10, "ten"));
  EXPECT_FALSE(bring());
  EXPECT_EQ(calls, 1);
}

TEST_F(CourierTest, NothingIsTriedWithoutAScheduler) {
  start(1h);
  courier->set_connected(false);
  wrote(checkpoint(10, "ten"));
  EXPECT_FALSE(bring()) << "and nobody waits for it";
  EXPECT_EQ(calls, 0);
  courier->set_connected(true);
  EXPECT_TRUE(bring());
}

TEST_F(CourierTest, WithoutADepotNothingIsKept) {
  start(0ms);
  wrote(checkpoint(10, "ten"));
  EXPECT_TRUE(bring());
  EXPECT_EQ(calls, 0);
}

TEST_F(CourierTest, NothingLeavesButFilesOfRuns) {
  start(1h);
  write_text(folder / "secret", "secret");
  std::filesystem::create_directories(folder / "runs");
  std::filesystem::create_symlink(folder / "secret", folder / "runs/link");
  std::filesystem::create_directories(folder / "runs/folder");
  for (const auto& path : {folder / "secret", folder / "runs/link", folder / "runs/../secret",
                           folder / "runs/folder", folder / "runs/nothing"}) {
    auto said = checkpoint(10, "secret");
    said.set_path(path);
    wrote(said);
    EXPECT_TRUE(bring()) << path << ": there is nothing to be waited for";
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(CourierTest, TheBestIsBroughtWhereOthersTakeIt) {
  start(1h);
  auto best = checkpoint(10, "ten");
  best.set_best(best.path());
  wrote(best);
  wrote(checkpoint(20, "twenty"));
  EXPECT_TRUE(bring(/*best=*/true));
  EXPECT_THAT(all(), testing::UnorderedElementsAre("ten", "twenty"));
}

TEST_F(CourierTest, ARunThatIsOverIsForgottenWhenItsLoadIsThere) {
  start(1h);
  fails = Code::kNotFound, fails_until = 1;
  wrote(checkpoint(10, "ten"));
  courier->forget(7, /*when_brought=*/true);
  EXPECT_TRUE(eventually([&] { return all().size() == 1; }));
  wrote(checkpoint(20, "twenty"));
  courier->forget(7);
  EXPECT_TRUE(bring());
  EXPECT_THAT(all(), ElementsAre("ten"));
}

TEST_F(CourierTest, WeightsThatOthersTakeFollowWhereTheRunsEndDidNotWaitForThem) {
  start(1h);
  fails = Code::kNotFound, fails_until = 1;
  auto best = checkpoint(10, "ten");
  best.set_best(best.path());
  wrote(best);
  wrote(checkpoint(20, "twenty"));
  EXPECT_FALSE(bring(/*best=*/true, 1ms));
  courier->forget(7);  // it has completed: of one that nobody waits for nothing more is needed
  EXPECT_TRUE(eventually([&] { return all().size() == 2; }));
  EXPECT_THAT(all(), testing::UnorderedElementsAre("ten", "twenty"));
}

TEST(DepotLinkTest, ACertificateThatIsGoneSaysNothingOfTheCopyAndIsLookedForAgain) {
  const TemporaryFolder folder;
  DepotLink link{"127.0.0.1:1",
                 {.tls = true, .own = {.certificate = folder / "gone.crt", .key = folder / "gone.key"}}};
  int waits = 0;
  const auto go_on = [&](std::chrono::milliseconds wait) { return wait == 0ms || ++waits < 2; };
  EXPECT_FALSE(link.fetch({}, folder / "file", sha256_hex("x"), 1, go_on));
  EXPECT_EQ(waits, 2);
}

}  // namespace
}  // namespace abl::agent
