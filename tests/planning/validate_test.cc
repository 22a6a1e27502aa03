// SPDX-License-Identifier: Apache-2.0
#include "planning/validate.h"

#include <gmock/gmock.h>

namespace abl::planning {
namespace {

ablate::v1::SweepFile file_of(const std::string& text) {
  ablate::v1::SweepFile file;
  file.set_path("s.yaml");
  file.set_text(text);
  return file;
}

TEST(ValidateTest, SaysHowMuchAFileAsksFor) {
  const auto answer =
      validate(file_of("ablate: 1\n"
                       "name: s\n"
                       "base:\n"
                       "  model: {preset: simple-vit-s}\n"
                       "  data: {name: cifar10}\n"
                       "  recipe: {use: cifar-lite}\n"
                       "rows:\n"
                       "  - {id: a, label: a}\n"
                       "  - {id: b, label: b, set: {model.depth: 1}}\n"
                       "  - {id: twin, label: twin}\n"
                       "seeds: [0, 1]\n"));
  EXPECT_EQ(answer.problems_size(), 0) << answer.ShortDebugString();
  EXPECT_EQ(answer.sweep(), "s");
  EXPECT_EQ(answer.rows(), 3u);
  EXPECT_EQ(answer.seeds(), 2u);
  EXPECT_EQ(answer.trials(), 4u) << "the twin's are those of row a";
}

TEST(ValidateTest, ProblemsAreTheSameOnBothSidesOfAMessage) {
  const auto file = file_of("name: s\nseeds: [0]\nrow: []\n");
  const auto answer = validate(file);
  try {
    parse(file);
    FAIL() << "the file has problems";
  } catch (const sweeps::SweepFileError& error) {
    ASSERT_EQ(static_cast<std::size_t>(answer.problems_size()), error.problems().size());
    for (int i = 0; i < answer.problems_size(); ++i)
      EXPECT_EQ(problem_of(answer.problems(i)).text(), error.problems()[static_cast<std::size_t>(i)].text());
  }
}

}  // namespace
}  // namespace abl::planning
