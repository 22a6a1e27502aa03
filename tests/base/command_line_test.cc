// SPDX-License-Identifier: Apache-2.0
#include "base/command_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

#include "base/error.h"

namespace abl {
namespace {

/// A program with a nested command, and a flag in a group of its own.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    auto* const train = app_.add_subcommand("train", "");
    train->add_option_group("source", "")->add_option("--preset", preset_);
    train->add_option("--seed", seed_)->required();
    auto* const data = app_.add_subcommand("data", "")->require_subcommand(1);
    data->add_subcommand("check", "")->add_flag("--json", json_);
    data->add_subcommand("pack", "");
    app_.add_flag("--quiet", quiet_);
  }

  std::string refusal(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    const auto count = static_cast<int>(words.size());
    try {
      check_spelling(app_, count, words.data());
      app_.parse(count, words.data());
    } catch (const CLI::ParseError& error) {
      return complaint(app_, error);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  CLI::App app_{"", "program"};
  std::string preset_;
  int seed_ = 0;
  bool json_ = false, quiet_ = false;
};

TEST_F(CommandLineTest, AFlagOfTheProgramStandsBeforeItsCommand) {
  EXPECT_EQ(refusal({"--quiet", "data", "check", "--json"}), "");
  EXPECT_THAT(refusal({"--quiet", "data", "check", "--jsno"}), testing::HasSubstr("unknown flag '--jsno'"));
  EXPECT_THAT(refusal({"--quiet", "dta"}), testing::HasSubstr("unknown command 'dta'"));
  EXPECT_THAT(refusal({"--json", "data", "check"}), testing::HasSubstr("unknown flag '--json'"));
}

TEST(PlainHelp, SaysWhatAValueIsAndNothingOfTheParser) {
  CLI::App app{"Trains.", "program"};
  use_plain_help(app);
  int threads = 2;
  double pause = 20;
  std::string split = "val", file, preset;
  auto* const train = app.add_subcommand("train", "Train");
  train->add_option("--config", file, "The trial")->type_name("FILE")->required();
  train->add_option("--threads", threads, "Threads")
      ->check(whole_number(1, 8))
      ->type_name("N")
      ->capture_default_str();
  train->add_option("--pause", pause, "Time between")
      ->envname("PAUSE")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  train->add_option("--split", split, "Images")->check(one_of({"val", "train"}))->type_name("val|train");
  auto* const group = train->add_option_group("source", "");
  group->option_defaults()->group("Which model");
  group->add_option("--preset", preset, "By name")->type_name("NAME");
  const std::string help = train->help();
  for (const char* line :
       {"Usage: train [FLAGS]", "Flags:", "  -h,--help                       Print this and exit",
        "  --config FILE                   The trial [required]",
        "  --threads N                     Threads [2]",
        "  --pause SECONDS                 Time between [$PAUSE, 20]",
        "Which model:", "  --preset NAME                   By name"})
    EXPECT_THAT(help, testing::HasSubstr(std::string{line} + "\n")) << help;
  for (const char* parser :
       {"INT", "TEXT", "FLOAT", "OPTIONS", "Option Group", "Env", "REQUIRED", "{", " in "})
    EXPECT_THAT(help, testing::Not(testing::HasSubstr(parser)));
  const auto refusal = [&](const std::string& words) -> std::string {
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return complaint(app, error);
    }
    return "";
  };
  const std::string see = "; see 'program train --help'";
  EXPECT_EQ(refusal("train --config x --threads 0"),
            "--threads: '0' is not a whole number from 1 to 8" + see);
  EXPECT_EQ(refusal("train --config x --split vall"),
            "--split: 'vall' is not val or train; did you mean 'val'?" + see);
  for (const char* wrong : {"-1", "nan", "inf", "5s"})
    EXPECT_EQ(refusal(std::string{"train --config x --pause='"} + wrong + "'"),
              fmt::format("--pause: '{}' is not a number of seconds, 0 or more", wrong) + see);
  EXPECT_EQ(refusal("train --config x --pause 1e3 --threads 8 --split train"), "");
}

TEST_F(CommandLineTest, WhatIsSpeltRightIsTaken) {
  EXPECT_EQ(refusal({"train", "--preset", "a", "--seed=1"}), "");
  EXPECT_EQ(refusal({"data", "check", "--json"}), "");
}

TEST_F(CommandLineTest, AMisspeltCommandGetsTheNearestName) {
  EXPECT_EQ(refusal({"trian"}), "unknown command 'trian'; did you mean 'train'?");
  EXPECT_EQ(refusal({"data", "chekc"}), "unknown command 'chekc'; did you mean 'check'?");
}

TEST_F(CommandLineTest, AMisspeltFlagGetsTheNearestNameThoughAnotherIsMissing) {
  EXPECT_EQ(refusal({"train", "--presett", "a"}), "unknown flag '--presett'; did you mean '--preset'?");
  EXPECT_EQ(refusal({"data", "check", "--jsno"}), "unknown flag '--jsno'; did you mean '--json'?");
}

TEST_F(CommandLineTest, AComplaintIsOneLineThatSaysWhereHelpIs) {
  EXPECT_EQ(refusal({"train"}), "--seed is required; see 'program train --help'");
  EXPECT_EQ(refusal({"train", "--seed"}), "--seed: a value is missing; see 'program train --help'");
  EXPECT_EQ(refusal({"train", "--seed", "1", "--seed", "2"}),
            "--seed: it is given more than once, expected once; see 'program train --help'");
  EXPECT_EQ(refusal({"data", "check", "extra"}),
            "unexpected argument extra; see 'program data check --help'");
  EXPECT_EQ(refusal({"data"}), "expected a command: check, pack; see 'program data --help'");
}

TEST(WholeNumber, AComplaintNamesTheBounds) {
  CLI::App app{"", "program"};
  int port = 0;
  app.add_option("--port", port)->check(whole_number(0, 65535));
  for (const char* given : {"70000", "-1", "1.5", "http"}) {
    const std::vector<const char*> words{"program", "--port", given};
    try {
      app.parse(3, words.data());
      ADD_FAILURE() << given;
    } catch (const CLI::ParseError& error) {
      EXPECT_EQ(complaint(app, error), std::string{"--port: '"} + given +
                                           "' is not a whole number from 0 to 65535; see 'program --help'");
    }
  }
}

}  // namespace
}  // namespace abl
