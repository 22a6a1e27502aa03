// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <torch/types.h>

#include "tests/ranks/trial_files.h"

namespace abl::ranks {
namespace {

class ResumeTest : public RanksTest {
 protected:
  static std::vector<std::string> from(const Said& before) {
    return {"--resume", before.checkpoint, "--resume-sha256", before.sha256};
  }
  /// Stopped by SIGTERM after the step that is then done.
  Said stopped(const json& trial, int ranks, std::int64_t step) {
    TrainerProgram program{arguments(trial, ranks)};
    Said said;
    for (auto event = program.next(); event; event = program.next()) {
      if (event->at("event") == "metric") {
        for (const auto& [name, value] : event->at("values").items())
          if (name.starts_with("train/") || name.starts_with("val"))
            said.points[name][event->at("step")] = value.get<double>();
        if (event->at("step") == step) break;
      }
    }
    program.child().terminate();
    auto rest = read_all(program);
    for (auto& [name, points] : said.points) rest.points[name].merge(points);
    return rest;
  }
  static json everything() {
    auto recipe = full_recipe();
    recipe["drop_path"] = 0.1, recipe["drop_path_rule"] = "constant", recipe["epochs"] = 30;
    return trial(small_vit(), recipe);
  }
};

TEST_F(ResumeTest, TwoRanksThatWereStoppedGoOnAsIfTheyHadNotBeen) {
  auto distillation = self_distillation();
  distillation["recipe"]["epochs"] = 5;
  for (const auto& trained : {everything(), distillation}) {
    const auto whole = run(trained, 2);
    const auto first = stopped(trained, 2, 7);
    ASSERT_EQ(first.end.value("status", ""), "stopped") << first.end;
    const auto second = run(trained, 2, from(first));
    ASSERT_EQ(second.end.value("status", ""), "completed") << second.end;
    EXPECT_GE(second.start.at("resumed_step"), 7);
    EXPECT_TRUE(second.start.at("bit_exact"));
    const auto expected = whole.state(), state = second.state();
    ASSERT_EQ(expected.size(), state.size());
    for (const auto& [name, tensor] : expected) EXPECT_TRUE(torch::equal(tensor, state.at(name))) << name;
    auto points = first.points;
    for (auto [name, steps] : second.points) points[name].merge(steps);
    EXPECT_EQ(points, whole.points);
  }
}

TEST_F(ResumeTest, ACheckpointOfTwoRanksIsContinuedByOneAndSaysThatBitsDiffer) {
  const auto first = stopped(everything(), 2, 3);
  const auto second = run(everything(), 1, from(first));
  EXPECT_EQ(second.end.value("status", ""), "completed") << second.end;
  EXPECT_GE(second.start.at("resumed_step"), 3);
  EXPECT_FALSE(second.start.at("bit_exact"));
  const auto back = run(everything(), 2, from(second));
  EXPECT_FALSE(back.start.at("bit_exact")) << back.start;
  EXPECT_EQ(back.end.value("status", ""), "completed") << back.end;
}

TEST_F(ResumeTest, ATerminalThatIsGoneStopsARunWithACheckpointAsSigtermDoes) {
  for (const int ranks : {1, 2}) {
    TrainerProgram program{arguments(everything(), ranks)};
    program.reach(3);
    ::kill(-program.child().pid(), SIGHUP);  // to all of them, as a terminal's end does
    const auto said = read_all(program);
    EXPECT_EQ(said.end.value("status", ""), "stopped") << said.end;
    EXPECT_EQ(said.exit_code, 0);
    EXPECT_GT(said.state().size(), 10u) << "there is a whole checkpoint";
  }
}

TEST_F(ResumeTest, RanksDrawDifferentNumbers) {
  const auto first = stopped(everything(), 2, 1);
  const auto random = first.state().at("ranks.random");
  EXPECT_EQ(random.size(0), 2);
  EXPECT_FALSE(torch::equal(random[0], random[1]));
}

}  // namespace
}  // namespace abl::ranks
