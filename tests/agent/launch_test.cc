// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/launch.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/sha256.h"
#include "protocol/checkpoint_files.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

using ablate::v1::Assign;
using testing::ElementsAre;
using testing::HasSubstr;

class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {
    settings.runs_root = folder.path() / "runs";
    settings.trainer = "/bin/trainer";
    settings.data = {{"shapes", ""}, {"cifar10", "/data/cifar10"}};
    settings.host = "here";
    assign.set_run(9);
    assign.set_trial(3);
    assign.set_attempt(2);
    assign.set_seed(-4);
    assign.set_config_json("{}");
  }
  std::string write_checkpoint(const std::string& name, const std::string& text = "weights") {
    const auto file = settings.runs_root / "3/1" / name;
    write_text(file, text);
    return file;
  }
  void add_checkpoint(std::uint32_t step, const std::string& host, const std::string& path,
                      const std::string& sha256) {
    auto& checkpoint = *assign.add_checkpoints();
    checkpoint.set_step(step);
    checkpoint.set_host(host);
    checkpoint.set_path(path);
    checkpoint.set_sha256(sha256);
    checkpoint.set_run(step);
  }

  TemporaryFolder folder;
  RunSettings settings;
  Assign assign;
  const Slot cpu{.device = "cpu", .name = "2 threads", .threads = 2, .visible = {}};
};

TEST_F(LaunchTest, TheTrainerIsStartedAsItsProtocolSays) {
  assign.set_data("cifar10");
  Resume resume;
  resume.checkpoint.emplace().set_path("/c.pt");
  resume.checkpoint->set_sha256("abc");
  const auto launch = plan_launch(assign, {cpu}, settings, "/runs/3/2", resume);
  EXPECT_THAT(launch.argv,
              ElementsAre("/bin/trainer", "train", "--config", "/runs/3/2/config.json", "--run-dir",
                          "/runs/3/2", "--resume", "/c.pt", "--resume-sha256", "abc", "--restart-if-lost",
                          "--data-root", "/data/cifar10", "--threads", "2", "--device", "cpu"));
  const std::map<std::string, std::string> expected{{"ABLATE_CONFIG", "/runs/3/2/config.json"},
                                                    {"ABLATE_RUN_DIR", "/runs/3/2"},
                                                    {"ABLATE_SEED", "-4"},
                                                    {"ABLATE_RESUME", "/c.pt"},
                                                    {"ABLATE_RESUME_SHA256", "abc"},
                                                    {"ABLATE_DATA", "/data/cifar10"},
                                                    {"ABLATE_THREADS", "2"},
                                                    {"ABLATE_DEVICE", "cpu"},
                                                    {"GOMP_SPINCOUNT", "1000"}};
  EXPECT_EQ(launch.environment, expected);
}

TEST_F(LaunchTest, WeightsThatRecipesNameGoWithTheTrainer) {
  settings.weights = {{"regnety_160", "/weights/teacher.safetensors"}, {"deit", "/weights/deit.safetensors"}};
  assign.add_weights("regnety_160");
  const auto argv = plan_launch(assign, {cpu}, settings, "/runs/3/2", {}).argv;
  EXPECT_THAT(argv, testing::IsSupersetOf({"--weights", "regnety_160=/weights/teacher.safetensors"}));
  EXPECT_EQ(std::ranges::count(argv, "--weights"), 1) << "those that the trial names, of what the worker has";
}

TEST_F(LaunchTest, WhereDataAndWeightsLayIsKeptForWhoRunsItAgain) {
  settings.weights = {{"regnety_160", "/weights/teacher.safetensors"}, {"deit", "/weights/deit.safetensors"}};
  assign.set_data("cifar10");
  assign.add_weights("deit");
  EXPECT_EQ(launch_record(assign, settings),
            R"({"data":"/data/cifar10","weights":{"deit":"/weights/deit.safetensors"}})");
  assign.set_data("shapes");
  assign.clear_weights();
  EXPECT_EQ(launch_record(assign, settings), "{}") << "the trainer draws these itself";
}

TEST_F(LaunchTest, WhatIsNotThereIsLeftOut) {
  assign.set_data("shapes");
  const auto launch = plan_launch(assign, {cpu}, settings, "/runs/3/2", {});
  EXPECT_THAT(launch.argv, ElementsAre("/bin/trainer", "train", "--config", "/runs/3/2/config.json",
                                       "--run-dir", "/runs/3/2", "--threads", "2", "--device", "cpu"));
  EXPECT_EQ(launch.environment.at("ABLATE_RESUME"), "");
  EXPECT_EQ(launch.environment.at("ABLATE_DATA"), "");
}

TEST_F(LaunchTest, ACommandGetsItsArgumentsAsTheyAre) {
  for (const char* argument : {"python3", "a b; rm -rf $HOME", ""}) assign.add_argv(argument);
  EXPECT_THAT(plan_launch(assign, {cpu}, settings, "/runs/3/2", {}).argv,
              ElementsAre("python3", "a b; rm -rf $HOME", ""));
}

TEST_F(LaunchTest, ParamsSeedFolderAndDataAreFilledIntoTheArgumentsEachOnItsOwn) {
  settings.data["photos"] = "/data/my photos";
  assign.set_data("photos");
  assign.set_config_json(
      R"({"argv":[],"params":{"lr":1e-05,"steps":20,"name":"a b; rm -rf {seed} $HOME","opt":{"name":"sgd"},"on":true},"seed":-4})");
  for (const char* argument :
       {"python3", "--lr={params.lr}", "{params.steps}", "{params.name}", "{params.opt.name}", "{params.opt}",
        "{params.on}", "{seed}", "{run_dir}/out", "{data}", "{{seed} {lr} ${HOME}"})
    assign.add_argv(argument);
  EXPECT_THAT(
      plan_launch(assign, {cpu}, settings, "/runs/3/2", {}).argv,
      ElementsAre("python3", "--lr=1e-05", "20", "a b; rm -rf {seed} $HOME", "sgd", R"({"name":"sgd"})",
                  "true", "-4", "/runs/3/2/out", "/data/my photos", "{seed} {lr} ${HOME}"));
  assign.add_argv("{params.gone}");
  EXPECT_THROW(plan_launch(assign, {cpu}, settings, "/runs/3/2", {}), Error);
}

TEST_F(LaunchTest, ACommandThatGoesOnFromACheckpointHasItsFurtherArguments) {
  assign.set_config_json(
      R"({"argv":["x","{checkpoint}"],"params":{"lr":2},"resume_argv":["--resume","{checkpoint}","--lr={params.lr}"]})");
  assign.add_argv("x");
  assign.add_argv("{checkpoint}");
  EXPECT_THAT(plan_launch(assign, {cpu}, settings, "/runs/3/2", {}).argv, ElementsAre("x", "{checkpoint}"))
      << "in argv it is the program's own";
  Resume resume;
  resume.checkpoint.emplace().set_path("/runs/3/1/a b.pth");
  EXPECT_THAT(plan_launch(assign, {cpu}, settings, "/runs/3/2", resume).argv,
              ElementsAre("x", "{checkpoint}", "--resume", "/runs/3/1/a b.pth", "--lr=2"));
  assign.set_config_json(R"({"argv":["x"],"resume_argv":3})");
  EXPECT_THROW(plan_launch(assign, {cpu}, settings, "/runs/3/2", resume), Error);
}

TEST_F(LaunchTest, ACommandRunsInItsFolderAndTheTrainerInTheRunsOwn) {
  assign.add_argv("python3");
  EXPECT_EQ(plan_launch(assign, {cpu}, settings, "/runs/3/2", {}).folder, "/runs/3/2");
  assign.set_folder(folder.path());
  EXPECT_EQ(plan_launch(assign, {cpu}, settings, "/runs/3/2", {}).folder, folder.path());
  EXPECT_EQ(lacks_folder(assign), "");
  assign.set_folder(folder.path() / "gone");
  EXPECT_THAT(lacks_folder(assign), HasSubstr("missing working folder " + (folder.path() / "gone").string()));
}

TEST_F(LaunchTest, ARunSeesTheGpusOfItsSlotsAlone) {
  const std::vector<Slot> slots{{.device = "cuda:1", .name = "H200", .threads = 8, .visible = "1"},
                                {.device = "cuda:3", .name = "H200", .threads = 8, .visible = "3"}};
  const auto launch = plan_launch(assign, slots, settings, "/runs/3/2", {});
  EXPECT_EQ(launch.environment.at("CUDA_VISIBLE_DEVICES"), "1,3");
  EXPECT_EQ(launch.environment.at("ABLATE_DEVICE"), "cuda:0");
  EXPECT_EQ(launch.environment.at("ABLATE_THREADS"), "16");
}

TEST_F(LaunchTest, ATrainerWithSeveralGpusGetsARankForEach) {
  const Slot one{.device = "cuda:0", .name = "H200", .threads = 8, .visible = "0"},
      other{.device = "cuda:1", .name = "H200", .threads = 8, .visible = "GPU-5"};
  const auto several = plan_launch(assign, {one, other}, settings, "/runs/3/2", {}).argv;
  EXPECT_THAT((std::vector(several.end() - 6, several.end())),
              ElementsAre("--threads", "16", "--device", "cuda", "--ranks", "2"));
  const auto alone = plan_launch(assign, {other}, settings, "/runs/3/2", {}).argv;
  EXPECT_THAT((std::vector(alone.end() - 2, alone.end())), ElementsAre("--device", "cuda:0"));
}

TEST_F(LaunchTest, TheNewestCheckpointOfThisHostIsTaken) {
  const auto newer = write_checkpoint("b"), older = write_checkpoint("a");
  add_checkpoint(20, "here", newer, sha256_hex("weights"));
  add_checkpoint(10, "here", older, sha256_hex("weights"));
  const auto resume = choose_checkpoint(assign, settings);
  ASSERT_TRUE(resume.checkpoint);
  EXPECT_EQ(resume.checkpoint->step(), 20U);
  EXPECT_EQ(resume.checkpoint->run(), 20U);
}

TEST_F(LaunchTest, ADamagedOrMissingCheckpointIsNamedAndTheOneBeforeIsTaken) {
  add_checkpoint(30, "here", settings.runs_root / "3/1/gone", "");
  add_checkpoint(20, "here", write_checkpoint("b", "weigh"), sha256_hex("weights"));
  add_checkpoint(10, "here", write_checkpoint("a"), sha256_hex("weights"));
  const auto resume = choose_checkpoint(assign, settings);
  ASSERT_TRUE(resume.checkpoint);
  EXPECT_EQ(resume.checkpoint->step(), 10U);
  EXPECT_THAT(resume.notes, ElementsAre(HasSubstr("step 30 is gone"), HasSubstr("step 20 is damaged"),
                                        HasSubstr("resumes from step 10")));
}

TEST_F(LaunchTest, OnAnotherMachineTheTrialStartsAgainAndSaysWhy) {
  add_checkpoint(20, "there", settings.runs_root / "3/1/b", sha256_hex("weights"));
  const auto resume = choose_checkpoint(assign, settings);
  EXPECT_FALSE(resume.checkpoint);
  EXPECT_THAT(resume.notes,
              ElementsAre(HasSubstr("step 20 is on there"), HasSubstr("restarting from the beginning")));
}

TEST_F(LaunchTest, ACheckpointOnASharedRootIsTaken) {
  add_checkpoint(20, "there", write_checkpoint("b"), sha256_hex("weights"));
  EXPECT_TRUE(choose_checkpoint(assign, settings).checkpoint);
}

TEST_F(LaunchTest, WithoutADigestTheSamePathOnAnotherMachineIsTakenFromTheSameResultsFileAlone) {
  const auto file = write_checkpoint("b", "of trial 3 of another results file");
  const auto own = create_run_directory(settings.runs_root, assign);
  protocol::sign_folder(own, std::string(32, 'a'));
  add_checkpoint(20, "there", file, "");
  EXPECT_FALSE(choose_checkpoint(assign, settings, own).checkpoint) << "nobody says whose it is";
  protocol::sign_folder(settings.runs_root / "3/1", std::string(32, 'b'));
  EXPECT_FALSE(choose_checkpoint(assign, settings, own).checkpoint);
  protocol::sign_folder(settings.runs_root / "3/1", std::string(32, 'a'));
  EXPECT_TRUE(choose_checkpoint(assign, settings, own).checkpoint) << "a root that both see";
}

TEST_F(LaunchTest, AFileOutsideOfTheRunsRootIsNeverRead) {
  write_text(folder.path() / "secret", "weights");
  write_checkpoint("a");
  std::filesystem::create_symlink(folder.path() / "secret", settings.runs_root / "3/1/link");
  for (const auto& path : {(folder.path() / "secret").string(), (settings.runs_root / "../secret").string(),
                           (settings.runs_root / "3/1/link").string()}) {
    assign.clear_checkpoints();
    add_checkpoint(20, "here", path, sha256_hex("weights"));
    const auto resume = choose_checkpoint(assign, settings);
    EXPECT_FALSE(resume.checkpoint) << path;
    EXPECT_THAT(resume.notes.front(), HasSubstr("lies outside of")) << path;
  }
}

TEST_F(LaunchTest, NoRunWritesIntoAnothersFolder) {
  EXPECT_EQ(create_run_directory(settings.runs_root, assign), settings.runs_root / "3/2");
  EXPECT_EQ(create_run_directory(settings.runs_root, assign), settings.runs_root / "3/2.2");
  EXPECT_EQ(create_run_directory(settings.runs_root, assign), settings.runs_root / "3/2.3");
  write_text(folder.path() / "file", "");
  EXPECT_THROW(create_run_directory(folder.path() / "file", assign), Error);
}

}  // namespace
}  // namespace abl::agent
