// SPDX-License-Identifier: Apache-2.0
// How `ablate verify` hands a stored run over to the trainer.
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
    submit(storage::sweep_of("s", 1, 1));
    const auto run = lease(1).run;
    trials.start(run, {.total_steps = 100, .data_fingerprint = "f", .environment_json = environment}, now);
    for (const std::uint32_t step : {20u, 40u}) {
      const auto file = home_.file("checkpoint-" + std::to_string(step), "x");
      trials.add_checkpoint({.run = run, .step = step, .host = "h", .path = file, .sha256 = "d"});
    }
    std::vector<std::string> command{"verify", "1", "--store", (folder / "results.db").string()};
    command.insert(command.end(), more.begin(), more.end());
    const auto outcome = home_.run_with_trainer(command, "echo \"$@\"");
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return outcome.out;
  }
  Home home_;
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

TEST_F(VerifyCommand, RanksOnTheProcessorAreTakenFromTheStartWhereThatIsWanted) {
  EXPECT_THAT(told(R"({"threads": 1, "device": "cpu", "ranks": 4})", {"--from-start"}),
              AllOf(HasSubstr("--threads 4 --device cpu\n"), Not(HasSubstr("--from"))));
}

}  // namespace
}  // namespace abl::cli
