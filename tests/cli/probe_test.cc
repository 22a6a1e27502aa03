// SPDX-License-Identifier: Apache-2.0
// How `ablate probe` hands the model of a stored run over to the trainer, and what becomes of what that
// finds.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/sha256.h"
#include "storage/probe_store.h"
#include "tests/cli/run_ablate.h"
#include "tests/storage/fixtures.h"

namespace abl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ProbeCommand : public storage::StoreTest {
 protected:
  void SetUp() override {
    submit(storage::sweep_of("s", 1, 1));
    run_ = lease(1).run;
    trials.start(run_,
                 {.total_steps = 100,
                  .data_fingerprint = "f",
                  .directory = home_.folder(),
                  .environment_json = R"({"threads": 3, "device": "cpu"})"},
                 now);
    trials.end(run_, {.state = storage::RunState::kCompleted}, now);
  }
  /// A checkpoint that is there; of the best evaluation, it has a second name.
  void write(std::uint32_t step, bool is_best = false, const std::string& sha256 = sha256_hex("x")) {
    const auto file = home_.file(fmt::format("checkpoint-{}", step), "x");
    trials.add_checkpoint({.run = run_,
                           .step = step,
                           .host = "h",
                           .path = file,
                           .sha256 = sha256,
                           .best = is_best ? home_.file("best", "x").string() : ""});
  }
  /// A trainer that leaves what it is told in the file `told`, and finds a value for each probe.
  Outcome run(std::vector<std::string> more) {
    more.insert(more.begin(), "probe");
    more.insert(more.end(), {"--store", (folder / "results.db").string()});
    return home_.run_with_trainer(more, fmt::format(R"(echo "$@" > {0}/told
echo '{{"probes":[{{"probe":"feature-norms","settings":{{}},"values":{{"last":2.5}}}}]}}')",
                                                    home_.folder().string()));
  }
  /// What the trainer is told, or what `ablate` complains of.
  std::string told(std::vector<std::string> more) {
    const auto outcome = run(std::move(more));
    return outcome.code == kExitOk ? read_file(home_.folder() / "told") : outcome.err;
  }
  std::string file(const std::string& name) const { return (home_.folder() / name).string(); }
  double stored() {
    return db
        .prepared(
            "SELECT last FROM metric_summary JOIN metric m ON m.id = metric_id WHERE m.name LIKE 'probe:%'")
        .one([](const storage::Statement& row) { return row.real(0); })
        .value_or(0);
  }

  Home home_;
  storage::RunId run_ = 0;
};

TEST_F(ProbeCommand, TakesTheBestWeightsAndTheMachineOfTheRun) {
  write(20, /*is_best=*/true);
  write(40);
  EXPECT_THAT(told({"1", "feature-norms", "--with", "feature-norms.images=8"}),
              AllOf(HasSubstr("probe --config /"), HasSubstr("--weights " + file("best") + " "),
                    HasSubstr("--threads 3 --device cpu"), HasSubstr("--data-fingerprint f "),
                    HasSubstr(R"({"images":8,"name":"feature-norms"})")));
  EXPECT_EQ(stored(), 2.5);
  EXPECT_EQ(storage::ProbeStore{db}.of(run_).at(0).step, 20u);
  EXPECT_THAT(told({"1", "feature-norms", "--last"}), HasSubstr("--weights " + file("checkpoint-40") + " "));
}

TEST_F(ProbeCommand, WithoutABestCheckpointTheNewestIsTaken) {
  write(20);
  write(40);
  EXPECT_THAT(told({"1", "attention", "code-norms"}), HasSubstr("--weights " + file("checkpoint-40") + " "));
}

TEST_F(ProbeCommand, WhatIsNotOfTheRunIsShownAndNotStored) {
  write(20);
  const auto outcome = run({"1", "feature-norms", "--image", "a.png", "--image", "b.png", "--average",
                            "--device", "cuda:1", "--data-root", "/data"});
  EXPECT_THAT(read_file(home_.folder() / "told"),
              AllOf(HasSubstr("--image a.png --image b.png"), HasSubstr("--average"),
                    HasSubstr("--device cuda:1"), HasSubstr("--data-root /data"), HasSubstr("--json")));
  EXPECT_THAT(outcome.out, HasSubstr("feature-norms\n  last 2.5\n"));
  EXPECT_THAT(outcome.err, HasSubstr("not stored: "));
  EXPECT_EQ(stored(), 0);
  run({"1", "feature-norms", "--no-store"});
  EXPECT_EQ(stored(), 0);
}

TEST_F(ProbeCommand, WithoutANameWhatIsStoredIsShown) {
  write(20);
  EXPECT_THAT(run({"1"}).err, HasSubstr("run 1 has no probe results; run 'ablate probe 1 feature-norms'"));
  const std::string png{"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\3", 24};
  storage::ProbeStore{db}.put(run_, {.request = {.name = "attention"}, .values = {{"entropy", 0.5}}}, 20,
                              {{.name = "maps", .sha256 = "a", .width = 2, .height = 3, .png = png}}, now);
  const auto outcome = run({"1", "--out", file("found")});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("entropy 0.5"),
                                 HasSubstr("picture maps: " + file("found/attention-maps.png"))));
  EXPECT_EQ(read_file(file("found/attention-maps.png")), png);
  EXPECT_THAT(read_file(file("found/attention.json")), HasSubstr(R"("entropy":0.5)"));
  const auto json = nlohmann::json::parse(run({"1", "--json"}).out);
  EXPECT_EQ(json["probes"][0]["pictures"][0]["height"], 3);
}

TEST_F(ProbeCommand, OfASweepThoseThatWereNotProbed) {
  write(20);
  EXPECT_THAT(run({"s"}).err,
              HasSubstr("the file of sweep s lists no probes; name them: ablate probe s feature-norms"));
  db.execute(R"(UPDATE sweep SET probes = '[{"name": "feature-norms"}]')");
  const auto first = run({"s"});
  EXPECT_EQ(first.code, kExitOk) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("a/0 run 1: feature-norms\n"), HasSubstr("1 run probed\n")));
  EXPECT_EQ(stored(), 2.5);
  EXPECT_THAT(run({"s"}).out, HasSubstr("0 runs probed, 1 had all results already"));
  EXPECT_THAT(run({"s", "--again"}).out, HasSubstr("1 run probed\n"));
  std::filesystem::remove(file("checkpoint-20"));
  const auto gone = run({"s", "--again"});
  EXPECT_EQ(gone.code, kExitFailed);
  EXPECT_THAT(gone.out, HasSubstr("run 1 has no checkpoint on this machine"));
  EXPECT_EQ(stored(), 2.5) << "what was found before stays";
  EXPECT_THAT(run({"s", "--image", "a.png"}).err, HasSubstr("are of one run"));
}

TEST_F(ProbeCommand, OfARunThatGoesOnTheBestMayBeOfTheAttemptBefore) {
  write(20, /*is_best=*/true);
  db.execute("UPDATE trial SET state = 'queued', run_id = NULL; UPDATE run SET state = 'stopped'");
  const auto second = lease(1).run;
  trials.start(second,
               {.total_steps = 100,
                .data_fingerprint = "f",
                .environment_json = R"({"threads": 3, "device": "cpu"})",
                .resumed_from_step = 20,
                .resumed_from_run = run_},
               now);
  trials.end(second, {.state = storage::RunState::kCompleted}, now);
  trials.add_checkpoint({.run = second,
                         .step = 40,
                         .host = "h",
                         .path = home_.file("checkpoint-40", "x"),
                         .sha256 = sha256_hex("x")});
  EXPECT_THAT(told({"2", "feature-norms"}), HasSubstr("--weights " + file("best") + " "));
  EXPECT_EQ(storage::ProbeStore{db}.of(second).at(0).step, 20u);
  std::filesystem::remove(file("best"));
  EXPECT_THAT(told({"2", "feature-norms"}), HasSubstr("--weights " + file("checkpoint-20") + " "))
      << "its other name";
  std::filesystem::remove(file("checkpoint-20"));
  EXPECT_THAT(
      told({"2", "feature-norms"}),
      HasSubstr(
          "the weights of run 2's best evaluation are not on this machine; --last uses those of its last "
          "step"));
  EXPECT_THAT(told({"2", "feature-norms", "--last"}), HasSubstr("--weights " + file("checkpoint-40") + " "));
  EXPECT_EQ(storage::ProbeStore{db}.of(second).at(0).step, 20u) << "what was found before stays";
}

TEST_F(ProbeCommand, OfARunThatIsUnderWayNothingIsStored) {
  write(20);
  db.execute("UPDATE run SET state = 'running', ended_ms = NULL; UPDATE trial SET state = 'running'");
  EXPECT_THAT(run({"1", "feature-norms"}).err, HasSubstr("not stored: the run has not ended"));
  EXPECT_EQ(stored(), 0);
}

TEST_F(ProbeCommand, SaysInALineWhatItCannotDo) {
  EXPECT_THAT(told({"1", "feature-norms"}), HasSubstr("run 1 has no checkpoint on this machine: it ran on "));
  write(20, false, "another");
  EXPECT_THAT(told({"1", "feature-norms"}), HasSubstr("is not what run 1 wrote: its SHA-256 is another"));
  EXPECT_THAT(told({"1", "feature-norm"}), HasSubstr("did you mean 'feature-norms'?"));
  EXPECT_THAT(told({"1", "attention", "--with", "attention.imgs=3"}), HasSubstr("unknown setting 'imgs'"));
  EXPECT_THAT(told({}), HasSubstr("expected a run (a number, or SWEEP/ROW/SEED), a sweep, or --list"));
  EXPECT_THAT(told({"7", "attention"}), AllOf(HasSubstr("7"), Not(HasSubstr("--config"))));
  EXPECT_THAT(told({"t"}), HasSubstr("t"));
  EXPECT_THAT(told({"--list"}), HasSubstr("probe --list"));
}

TEST_F(ProbeCommand, ARunOfACommandHasNoModelToLookInto) {
  write(20);
  db.execute(R"(UPDATE trial SET config = '{"argv":["x"]}')");
  EXPECT_THAT(told({"1", "attention"}), HasSubstr("run 1 ran a custom command"));
}

}  // namespace
}  // namespace abl::cli
