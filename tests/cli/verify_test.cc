// SPDX-License-Identifier: Apache-2.0
// How `ablate verify` hands a stored run over to the trainer.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/run_ablate.h"
#include "tests/storage/fixtures.h"

namespace abl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class VerifyCommand : public storage::StoreTest {
 protected:
  /// What the trainer is told of a run with these facts of its machine and two checkpoints.
  std::string told(const std::string& environment, const std::vector<std::string>& more = {}) {
    const auto outcome = run(environment, more);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return outcome.out;
  }
  Outcome run(const std::string& environment, const std::vector<std::string>& more = {}) {
    submit(storage::sweep_of("s", 1, 1));
    if (!config_.empty()) db.execute("UPDATE trial SET config = '" + config_ + "'");
    const auto run = lease(1).run;
    trials.start(run,
                 {.total_steps = 100,
                  .data_fingerprint = "f",
                  .directory = home_.folder(),
                  .environment_json = environment},
                 now);
    for (const std::uint32_t step : {20u, 40u}) {
      const auto file = home_.file("checkpoint-" + std::to_string(step), "x");
      trials.add_checkpoint({.run = run, .step = step, .host = "h", .path = file, .sha256 = "d"});
    }
    std::vector<std::string> command{"verify", "1", "--store", (folder / "results.db").string()};
    command.insert(command.end(), more.begin(), more.end());
    return home_.run_with_trainer(command, "echo \"$@\"");
  }
  Home home_;
  std::string config_;  // of the trial, where it matters
};

TEST_F(VerifyCommand, ARunIsTrainedAgainBetweenItsLastTwoCheckpointsAsItsMachineDid) {
  EXPECT_THAT(told(R"({"threads": 3, "device": "cuda:1", "ranks": 1})"),
              AllOf(HasSubstr("verify --config /proc/self/fd/"), HasSubstr("checkpoint-40 "),
                    HasSubstr("--from " + (home_.folder() / "checkpoint-20").string()),
                    HasSubstr("--threads 3 --device cuda:1")));
}

TEST_F(VerifyCommand, RanksShareTheThreadsAndEachHasAGpuOfItsOwn) {
  EXPECT_THAT(told(R"({"threads": 3, "device": "cuda:0", "ranks": 2})"),
              HasSubstr("--threads 6 --device cuda\n"));
}

TEST_F(VerifyCommand, ARunThatWasDeterministicOnAGpuIsTrainedAgainSo) {
  EXPECT_THAT(told(R"({"threads": 1, "device": "cuda:0", "ranks": 1, "deterministic": true})"),
              HasSubstr("--device cuda:0 --deterministic"));
}

TEST_F(VerifyCommand, OnTheProcessorEveryRunIs) {
  EXPECT_THAT(told(R"({"threads": 1, "device": "cpu", "deterministic": true})"), Not(HasSubstr("--determ")));
}

TEST_F(VerifyCommand, DataAndWeightsAreTakenFromWhereItsWorkerHadThem) {
  const auto weights = home_.file("teacher.safetensors", "x");
  home_.file("launch.json", fmt::format(R"({{"data":"{}","weights":{{"teacher":"{}"}}}})",
                                        home_.folder().string(), weights.string()));
  EXPECT_THAT(told(R"({"threads": 1, "device": "cpu"})"),
              AllOf(HasSubstr("--data-root " + home_.folder().string()),
                    HasSubstr("--weights teacher=" + weights.string())));
}

TEST_F(VerifyCommand, FlagsGoBeforeWhatItsWorkerHad) {
  home_.file("launch.json", R"({"data":"/gone","weights":{"teacher":"/gone/too"}})");
  EXPECT_THAT(
      told(R"({"threads": 1, "device": "cpu"})", {"--data-root", "/data", "--weights", "teacher=/w"}),
      AllOf(HasSubstr("--data-root /data"), HasSubstr("--weights teacher=/w"), Not(HasSubstr("gone"))));
}

TEST_F(VerifyCommand, AFolderIsRefusedForImagesThatTheTrainerDraws) {
  config_ = R"({"data":{"name":"shapes"},"seed":0})";
  const Outcome outcome = run(R"({"threads": 1, "device": "cpu"})", {"--data-root", "/nope"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--data-root: run 1 trained on shapes, which the trainer draws itself"));
}

TEST_F(VerifyCommand, DataThatIsGoneIsNamedWithTheFlagForAnotherPlace) {
  home_.file("launch.json", R"({"data":"/gone"})");
  const Outcome outcome = run(R"({"threads": 1, "device": "cpu"})");
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(
      outcome.err,
      "error: the data was at /gone during the run and no longer exists: name it with --data-root FOLDER\n");
}

TEST_F(VerifyCommand, RanksOnTheProcessorAreTakenFromTheStartWhereThatIsWanted) {
  EXPECT_THAT(told(R"({"threads": 1, "device": "cpu", "ranks": 4})", {"--from-start"}),
              AllOf(HasSubstr("--threads 4 --device cpu\n"), Not(HasSubstr("--from"))));
}

}  // namespace
}  // namespace abl::cli
