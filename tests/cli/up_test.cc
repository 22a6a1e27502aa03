// SPDX-License-Identifier: Apache-2.0
// What `ablate up` says before it starts anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/cli/listener.h"
#include "tests/cli/run_ablate.h"

namespace abl::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Up, NotesAMisspeltNameOfARecipesWeights) {
  const Home home;
  EXPECT_THAT(
      home.run({"up", "--weights", "pretraned=/nope"}).err,
      HasSubstr("--weights pretraned=/nope: trials that name pretrained will not find it; did you mean "
                "'pretrained'?"));
  EXPECT_THAT(home.run({"up", "--weights", "pretrained=/nope"}).err, Not(HasSubstr("did you mean")));
}

TEST(Up, RefusesADataFolderOfNoKnownFormatInOneLineAndLeavesNothing) {
  if (!std::filesystem::exists(std::filesystem::path{ABLATE_BIN_DIR} / "ablate-trainer"))
    GTEST_SKIP() << "there is no trainer that knows formats";
  const Home home;
  const Listener listener;  // its port is taken, so that a start would end too
  const auto photos = home.folder() / "photos", made = home.folder() / "new";
  std::filesystem::create_directory(photos);
  home.file("photos/notes.txt", "none");
  for (const bool detached : {false, true}) {
    std::vector<std::string> words{"up",          "--port", std::to_string(listener.port()), "--home",
                                   made.string(), "--data", "photos=" + photos.string()};
    if (detached) words.emplace_back("--detach");
    const Outcome outcome = home.run(words);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, testing::StartsWith("error: --data photos: " + photos.string() +
                                                 " holds no data set of a known format; looked for "));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(made));
  }
}

}  // namespace
}  // namespace abl::cli
