// SPDX-License-Identifier: Apache-2.0
// `ablate data` hands over to the trainer that lies beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cli/run_ablate.h"

namespace abl::cli {
namespace {

using testing::HasSubstr;

class DataCommand : public testing::Test {
 protected:
  Outcome run(const std::vector<std::string>& arguments, const std::string& trainer) const {
    return home_.run_with_trainer(arguments, trainer);
  }
  Home home_;
};

TEST_F(DataCommand, BecomesTheTrainersCommandWithItsOutputAndExitCode) {
  const auto outcome = run({"data", "check", "--root", "some folder", "--name", "cifar10", "--json"},
                           "echo \"$0|$@|$3$4\"; echo seen >&2; exit 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.out,
      HasSubstr("ablate-trainer|data check --root some folder --name cifar10 --json|--rootsome folder\n"));
  EXPECT_EQ(outcome.err, "seen\n");
}

TEST_F(DataCommand, PacksWithWhatItWasGiven) {
  const auto outcome =
      run({"data", "pack", "--root", "a", "--output", "b", "--bound", "256", "--raw"}, "echo \"$@\"");
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_EQ(outcome.out, "data pack --root a --output b --bound 256 --raw\n");
}

TEST_F(DataCommand, BadUsageIsSaidBeforeATrainerIsLookedFor) {
  EXPECT_EQ(run({"data", "check"}, "").code, kExitUsage);
  EXPECT_THAT(run({"data", "chekc", "--root", "a"}, "").err, HasSubstr("did you mean 'check'?"));
  EXPECT_THAT(run({"data", "pack", "--root", "a"}, "").err,
              HasSubstr("name the file that is to be written with --output FILE.abldata"));
  EXPECT_THAT(run({"data", "check", "--root", "a", "--raw"}, "").err, HasSubstr("'data pack' does"));
}

TEST_F(DataCommand, WithoutATrainerItSaysHowToNameOne) {
  const auto outcome = run({"data", "check", "--root", "a"}, "");
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("set ABLATE_TRAINER"));
}

TEST_F(DataCommand, TheEnvironmentsTrainerIsTakenBeforeTheOneBeside) {
  const auto beside = run({"data", "check", "--root", "a"}, "echo beside");
  EXPECT_EQ(beside.out, "beside\n");
  const auto named = home_.file("named", "#!/bin/sh\necho \"named $1\"\n");
  std::filesystem::permissions(named, std::filesystem::perms::owner_all);
  const auto outcome = home_.run({"data", "check", "--root", "a"}, {{"ABLATE_TRAINER", named.string()}},
                                 home_.folder() / "ablate");
  EXPECT_EQ(outcome.out, "named data\n");
}

}  // namespace
}  // namespace abl::cli
