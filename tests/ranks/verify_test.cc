// SPDX-License-Identifier: Apache-2.0
// `ablate-trainer verify` of runs of several ranks.
#include <gmock/gmock.h>
#include <signal.h>
#include <torch/cuda.h>

#include "tests/ranks/rank_processes.h"
#include "tests/ranks/trial_files.h"

namespace abl::ranks {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What a verification left behind.
struct Verdict {
  int exit_code = 0;
  std::string out, err;
  json result() const { return json::parse(out); }
};

class VerifyTest : public RanksTest {
 protected:
  VerifyTest() { std::filesystem::create_directory(scratch_); }

  /// A training of two ranks that keeps a checkpoint of every step.
  Said trained() {
    auto recipe = full_recipe();
    recipe["drop_path"] = 0.1, recipe["drop_path_rule"] = "constant";
    auto said = run(trial(small_vit(), recipe), 2, {"--checkpoint-seconds", "0", "--keep-last", "100"});
    EXPECT_EQ(said.end.value("status", ""), "completed") << said.end;
    return said;
  }
  static std::filesystem::path checkpoint(const Said& run, int step) {
    return run.checkpoint.parent_path() / ("checkpoint-" + std::to_string(step) + ".safetensors");
  }
  std::filesystem::path points_of(const Said& run) const {
    json points;
    for (const auto& [name, values] : run.points)
      for (const auto& [step, value] : values) points[std::to_string(step)][name] = value;
    std::ofstream{folder_ / "points"} << points;
    return folder_ / "points";
  }

  /// The verification of a run whose checkpoints lie beside this configuration, up to `to`.
  std::unique_ptr<ChildProcess> start(const std::filesystem::path& to,
                                      const std::vector<std::string>& more = {}) const {
    ChildOptions options;
    options.argv = {ABLATE_BIN_DIR "/ablate-trainer",
                    "verify",
                    "--json",
                    "--config",
                    to.parent_path() / "config.json",
                    "--to",
                    to,
                    "--threads",
                    "2"};
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    options.environment = {{"TMPDIR", scratch_}};
    options.stdout_fd = ::open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    options.stderr_fd = ::open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    auto child = std::make_unique<ChildProcess>(options);
    ::close(options.stdout_fd), ::close(options.stderr_fd);
    return child;
  }
  Verdict end_of(ChildProcess& child) const {
    const int code = child.wait().code;
    EXPECT_TRUE(std::filesystem::is_empty(scratch_)) << "nothing stays behind";
    return {.exit_code = code, .out = read_file(folder_ / "out"), .err = read_file(folder_ / "err")};
  }
  Verdict verify(const std::filesystem::path& to, const std::vector<std::string>& more = {}) const {
    return end_of(*start(to, more));
  }

  const std::filesystem::path scratch_ = folder_ / "scratch";
};

TEST_F(VerifyTest, TwoRanksAreTheSameToTheBit) {
  const auto run = trained();
  const auto stretch =
      verify(checkpoint(run, 12), {"--from", checkpoint(run, 7), "--points", points_of(run)});
  ASSERT_EQ(stretch.exit_code, 0) << stretch.out << stretch.err;
  const auto result = stretch.result();
  EXPECT_TRUE(result.at("same"));
  EXPECT_EQ(result.at("from"), 7);
  EXPECT_EQ(result.at("to"), 12);
  EXPECT_EQ(result.at("other_machine"), "");
  EXPECT_GT(result.at("compared"), 20);
  EXPECT_EQ(result.at("points").back().at("values").at("val/top1"), run.points.at("val/top1").at(12));

  const auto whole = verify(checkpoint(run, 5));
  EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.err;
  EXPECT_EQ(whole.result().at("from"), 0);
}

TEST_F(VerifyTest, ACheckpointOfTwoRanksThatWasTamperedWithIsFoundDifferent) {
  const auto run = trained();
  const auto tamper = [&](int step, const char* name) {
    auto content = models::read_safetensors(checkpoint(run, step));
    content.tensors.at(name) = content.tensors.at(name).clone();
    content.tensors.at(name).flatten()[0] += 1;
    content.metadata.erase("crc32");  // otherwise it is damaged, and refused as such
    models::write_safetensors(checkpoint(run, step), content);
  };
  tamper(12, "model.head.bias");
  const auto late = verify(checkpoint(run, 12), {"--from", checkpoint(run, 10)});
  EXPECT_EQ(late.exit_code, 1) << late.err;
  ASSERT_EQ(late.result().at("different").size(), 1U);
  EXPECT_EQ(late.result().at("different").at(0).at("name"), "model.head.bias");

  tamper(8, "ranks.random");  // of the first rank: others draw as before
  const auto early = verify(checkpoint(run, 10), {"--from", checkpoint(run, 8)});
  EXPECT_EQ(early.exit_code, 1) << early.err;
  EXPECT_FALSE(early.result().at("same"));
}

TEST_F(VerifyTest, APointThatWasStoredOtherwiseIsFound) {
  auto run = trained();
  run.points.at("val/loss").at(6) += 1e-9;
  const auto outcome = verify(checkpoint(run, 6), {"--points", points_of(run)});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.result().at("different").at(0).at("name"), "val/loss at step 6");
}

TEST_F(VerifyTest, ARankThatIsKilledEndsTheVerificationAndIsNoDifference) {
  const auto run = trained();
  for (const std::size_t victim : {0, 1}) {
    const auto child = start(checkpoint(run, 12));
    auto pids = ranks_of(child->pid());
    while (pids.size() < 2 && !child->poll()) pids = ranks_of(child->pid());
    ASSERT_EQ(pids.size(), 2U);
    ::kill(pids[victim], SIGKILL);
    const auto outcome = end_of(*child);
    EXPECT_EQ(outcome.exit_code, 3) << "1 would say: not bit-identical";
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err,
                HasSubstr("ablate-trainer: rank " + std::to_string(victim) + " of 2: killed by SIGKILL (9)"));
    EXPECT_THAT(outcome.err, HasSubstr("nothing was compared"));
    for (const pid_t pid : pids) EXPECT_FALSE(lives(pid));
  }
}

TEST_F(VerifyTest, ItStopsWhenItIsAsked) {
  const auto run = trained();
  const auto child = start(checkpoint(run, 12));
  auto pids = ranks_of(child->pid());
  while (pids.size() < 2 && !child->poll()) pids = ranks_of(child->pid());
  child->terminate();
  const auto outcome = end_of(*child);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("stopped: nothing was compared"));
  for (const pid_t pid : pids) EXPECT_FALSE(lives(pid));
}

TEST_F(VerifyTest, GpusThatAreNotHereAreSaidInOneLine) {
  if (torch::cuda::device_count() > 1) GTEST_SKIP() << "several GPUs are here";
  const auto run = trained();
  const auto outcome = verify(checkpoint(run, 12), {"--device", "cuda"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--device cuda: the run of " + checkpoint(run, 12).string()),
                                 HasSubstr("needs 2 GPUs here, and ")));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;

  const auto one = verify(checkpoint(run, 12), {"--device", "cuda:0"});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.err, HasSubstr("--device cuda:0 is one GPU"));
}

}  // namespace
}  // namespace abl::ranks
