// SPDX-License-Identifier: Apache-2.0
#include "base/manual_page.h"

#include <gmock/gmock.h>

namespace abl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ManualPageTest : public testing::Test {
 protected:
  ManualPageTest() {
    app_.footer("Example:\n  program train\n.not a request\n'neither");
    auto* const train = app_.add_subcommand("train", "Train a trial");
    train->add_option_group("source", "")->add_option("--preset", text_, "A model's name");
    train->add_option("FILE", text_, "The trial, as in C:\\trial")->required();
    train->add_option("--seed,-s", seed_, "Seed")->capture_default_str();
    app_.add_subcommand("data", "Data sets")->add_subcommand("check", "Look for damage");
    add_manual_flag(app_);
  }
  CLI::App app_{"Trains.", "program"};
  std::string text_;
  int seed_ = 7;
};

TEST_F(ManualPageTest, HasEveryCommandArgumentAndFlag) {
  EXPECT_THAT(
      manual_page(app_),
      AllOf(HasSubstr(".TH PROGRAM 1"), HasSubstr("program \\- Trains."), HasSubstr(".SS train\n"),
            HasSubstr("\\fBprogram train\\fR \\fIFILE\\fR"), HasSubstr("\\fB\\-\\-preset\\fR"),
            HasSubstr("\\fB\\-s, \\-\\-seed\\fR"), HasSubstr("(default: 7)"), HasSubstr(".SS check\n"),
            HasSubstr("\\fBprogram data check\\fR"), HasSubstr("\\fB\\-\\-man\\fR")));
}

TEST_F(ManualPageTest, TextIsNeverTakenForARequest) {
  const std::string page = manual_page(app_);
  EXPECT_THAT(page,
              AllOf(HasSubstr("\n\\&.not a request"), HasSubstr("\n\\&'neither"), HasSubstr("C:\\etrial")));
  EXPECT_THAT(page, Not(HasSubstr("C:\\trial")));
}

TEST_F(ManualPageTest, FlagPrintsThePageAlsoWhereACommandIsMissing) {
  app_.require_subcommand(1);
  testing::internal::CaptureStdout();
  EXPECT_THROW(app_.parse("--man"), CLI::Success);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), manual_page(app_));
}

}  // namespace
}  // namespace abl
