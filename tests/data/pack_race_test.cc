// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include "data/pack.h"
#include "tests/data/data_folder.h"

namespace abl::data {
namespace {

class PackRace : public DataFolder {
 protected:
  /// A process that packs, and tells by its exit code: 10 made it, 11 found it made.
  pid_t packer() const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    int code = 12;
    try {
      code = pack(open(0, "set"), {.output = path("set.abldata")}).made ? 10 : 11;
    } catch (...) {
    }
    ::_exit(code);
  }
};

TEST_F(PackRace, OfSeveralPackersOneMakesTheFileAndTheOthersUseIt) {
  for (int i = 0; i < 30; ++i)
    for (const char* split : {"train", "val"}) put_picture(fmt::format("set/{}/a/{}.jpg", split, i));
  put("set.abldata.part", "of a packer that was killed");
  std::vector<pid_t> packers;
  for (int i = 0; i < 6; ++i) packers.push_back(packer());
  int made = 0, found = 0;
  for (const pid_t child : packers) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    made += WIFEXITED(status) && WEXITSTATUS(status) == 10;
    found += WIFEXITED(status) && WEXITSTATUS(status) == 11;
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(found, 5);
  EXPECT_EQ(open(1, "set.abldata").train->size(), 30u);
  EXPECT_FALSE(std::filesystem::exists(path("set.abldata.part")));
  EXPECT_FALSE(std::filesystem::exists(path("set.abldata.lock")));
}

}  // namespace
}  // namespace abl::data
