// SPDX-License-Identifier: Apache-2.0
#include "protocol/trainer_program.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"

namespace abl::protocol {
namespace {

class FindTrainer : public testing::Test {
 protected:
  FindTrainer() { ::unsetenv("ABLATE_TRAINER"); }
  ~FindTrainer() override { ::unsetenv("ABLATE_TRAINER"); }
};

TEST_F(FindTrainer, FlagThenEnvironmentThenBesideTheProgram) {
  const auto beside = program_folder() / "ablate-trainer";
  ASSERT_FALSE(std::filesystem::exists(beside)) << "of the tests' folder";
  EXPECT_EQ(find_trainer(), "");
  write_file_atomically(beside, "");
  EXPECT_EQ(find_trainer(), beside);
  ::setenv("ABLATE_TRAINER", "/named/trainer", 1);
  EXPECT_EQ(find_trainer(), "/named/trainer");
  EXPECT_EQ(find_trainer("/flag/trainer"), "/flag/trainer");
  std::filesystem::remove(beside);
}

TEST_F(FindTrainer, AnEmptyVariableIsNone) {
  ::setenv("ABLATE_TRAINER", "", 1);
  EXPECT_EQ(find_trainer(), "");
}

TEST_F(FindTrainer, ARelativePathIsOfTheFolderInWhichTheProgramWasStarted) {
  ::setenv("ABLATE_TRAINER", "bin/trainer", 1);
  EXPECT_EQ(find_trainer(), std::filesystem::current_path() / "bin/trainer");
  EXPECT_EQ(find_trainer("trainer"), std::filesystem::current_path() / "trainer");
}

}  // namespace
}  // namespace abl::protocol
