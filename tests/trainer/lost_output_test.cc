// SPDX-License-Identifier: Apache-2.0
// The program itself, when nobody reads what it says any more.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::trainer {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class LostOutputTest : public testing::Test {
 protected:
  struct Outcome {
    ChildExit exit;
    std::string err;
  };
  /// Runs the trainer until it ends. Its stdout is read up to a line with `last` in it ("": not at all), and
  /// then by nobody.
  Outcome run(std::vector<std::string> arguments, const std::string& last) {
    arguments.insert(arguments.begin(), ABLATE_BIN_DIR "/ablate-trainer");
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("cannot make a pipe", errno);
    FILE* const out = ::fdopen(ends[0], "r");
    const auto err = folder_.path() / "stderr";
    ChildOptions options{.argv = arguments};
    options.stdout_fd = ends[1];
    options.stderr_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (last.empty()) ::fclose(out);  // before it can say anything
    ChildProcess child{options};
    ::close(ends[1]), ::close(options.stderr_fd);
    if (!last.empty()) {
      read_up_to(last, out);
      ::fclose(out);
    }
    const auto exit = child.wait();
    return {.exit = exit, .err = read_file(err)};
  }
  static void read_up_to(const std::string& last, FILE* out) {
    std::string line;
    for (int next; (next = std::fgetc(out)) != EOF;) {
      line += static_cast<char>(next);
      if (next != '\n') continue;
      if (line.find(last) != std::string::npos) return;
      line.clear();
    }
    ADD_FAILURE() << "the program ended before it said " << last;
  }
  /// The events among the lines of a text, the newest of each kind.
  static std::map<std::string, Json> events(const std::string& text) {
    std::map<std::string, Json> newest;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with('{')) {
        const auto event = Json::parse(line);
        newest[event.at("event")] = event;
      }
    return newest;
  }

  TemporaryFolder folder_;
};

class LostOutputOfRanks : public LostOutputTest, public testing::WithParamInterface<int> {};

TEST_P(LostOutputOfRanks, ATrainingWhoseReaderGoesWritesACheckpointFromWhichItGoesOn) {
  const auto config = folder_.path() / "trial.json", run_dir = folder_.path() / "run";
  write_file_atomically(config, R"({
    "model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "patch": 8},
    "data": {"name": "shapes", "train_images": 60, "val_images": 20},
    "recipe": {"use": "demo", "epochs": 100000, "batch": 20, "eval_every": 1}, "seed": 0})");
  std::vector<std::string> arguments{"train",
                                     "--config",
                                     config.string(),
                                     "--run-dir",
                                     run_dir.string(),
                                     "--ranks",
                                     std::to_string(GetParam()),
                                     "--threads",
                                     std::to_string(GetParam()),
                                     "--checkpoint-seconds",
                                     "1000000"};
  const auto lost = run(arguments, R"("event":"metric")");
  EXPECT_EQ(lost.exit.signal, 0) << lost.exit.describe();
  EXPECT_EQ(lost.exit.code, kExitFailed) << "what it said was not heard: " << lost.err;
  EXPECT_THAT(lost.err, HasSubstr("ablate-trainer: cannot write standard output: Broken pipe\n"));
  const auto said = events(lost.err);
  ASSERT_TRUE(said.contains("checkpoint")) << lost.err;
  EXPECT_EQ(said.at("end").at("status"), "stopped");

  const std::int64_t step = said.at("checkpoint").at("step");
  EXPECT_GT(step, 0);
  arguments.insert(arguments.end(),
                   {"--resume", said.at("checkpoint").at("path"), "--resume-sha256",
                    said.at("checkpoint").at("sha256"), "--last-step", std::to_string(step + 3)});
  arguments.insert(arguments.begin(), ABLATE_BIN_DIR "/ablate-trainer");
  const auto resumed = events(run_program(arguments, "", std::chrono::minutes{5}));
  EXPECT_EQ(resumed.at("start").at("resumed_step"), step);
  EXPECT_EQ(resumed.at("checkpoint").at("step"), step + 3);
}
INSTANTIATE_TEST_SUITE_P(Ranks, LostOutputOfRanks, testing::Values(1, 2));

TEST_F(LostOutputTest, AnotherCommandSaysThatItsOutputCannotBeWritten) {
  const auto lost = run({"presets"}, "");
  EXPECT_EQ(lost.exit.signal, 0) << lost.exit.describe();
  EXPECT_EQ(lost.exit.code, kExitFailed);
  EXPECT_EQ(lost.err, "ablate-trainer: cannot write standard output: Broken pipe\n");
}

}  // namespace
}  // namespace abl::trainer
