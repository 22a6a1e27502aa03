// SPDX-License-Identifier: Apache-2.0
#include "protocol/failure.h"

#include <gmock/gmock.h>

#include <csignal>

namespace abl::protocol {
namespace {

using Of = FailureClass;

RetryRules rules(const std::string& text) { return retry_rules(text); }

const RetryRules kRules = rules(R"([["resources", 1], ["data", 0], ["exit 75", "infrastructure"],
    ["exit 3", "data"], ["signal SEGV", 0], ["log NCCL error .*", "infrastructure"], ["log out of luck", 5]])");

TEST(Failure, KindsAreReadAsPeopleWriteThem) {
  for (const char* text : {"signal SEGV", "signal SIGSEGV", "signal 11", "  signal   SEGV "})
    EXPECT_EQ(FailureKind::read(text)->text(), "signal SEGV") << text;
  for (const char* text : {"exit 75", "log NCCL error .*", "infrastructure", "resources", "trial", "data"})
    EXPECT_EQ(FailureKind::read(text)->text(), text);
  for (const char* text : {"", "exit", "exit 0", "exit 256", "exit -1", "exit x", "signal", "signal SEGF",
                           "signal 0", "resource", "logs x", "75"})
    EXPECT_FALSE(FailureKind::read(text)) << text;
}

TEST(Failure, RulesAreStoredAndReadBackInTheirOrder) {
  EXPECT_EQ(kRules.size(), 7u);
  EXPECT_EQ(retry_rules(to_text(kRules)), kRules);
  EXPECT_EQ(to_text({}), "");
  EXPECT_TRUE(retry_rules("").empty());
  EXPECT_TRUE(retry_rules("{").empty());
  EXPECT_THAT(log_patterns(kRules), testing::ElementsAre("NCCL error .*", "out of luck"));
}

TEST(Failure, WithoutARuleTheSweepsMaximumDecides) {
  const Verdict verdict = judge(kRules, {.of = Of::kTrial, .exit_code = 1});
  EXPECT_EQ(verdict.of, Of::kTrial);
  EXPECT_FALSE(verdict.rule);
  EXPECT_EQ(verdict.decided_by, "");
}

TEST(Failure, TheMostSpecificRuleDecides) {
  const auto by_class = judge(kRules, {.of = Of::kResources, .signal = SIGKILL});
  EXPECT_EQ(by_class.rule, 0u);
  EXPECT_FALSE(by_class.specific);
  EXPECT_EQ(by_class.decided_by, "resources");
  const auto by_signal = judge(kRules, {.of = Of::kResources, .signal = SIGSEGV});
  EXPECT_EQ(by_signal.rule, 4u) << "a signal before a class";
  EXPECT_TRUE(by_signal.specific);
  const auto by_log =
      judge(kRules, {.of = Of::kResources, .signal = SIGSEGV, .log_patterns = {"out of luck"}});
  EXPECT_EQ(by_log.rule, 6u) << "a log before a signal";
  const auto first = judge(kRules, {.log_patterns = {"out of luck", "NCCL error .*"}});
  EXPECT_EQ(first.of, Of::kInfrastructure) << "of two patterns the first in the file";
  EXPECT_EQ(first.decided_by, "log NCCL error .*");
}

TEST(Failure, WhatCountsAsAnotherClassGoesByItsRule) {
  const auto infrastructure = judge(kRules, {.of = Of::kTrial, .exit_code = 75});
  EXPECT_EQ(infrastructure.of, Of::kInfrastructure);
  EXPECT_FALSE(infrastructure.rule);
  EXPECT_EQ(infrastructure.decided_by, "exit 75");
  const auto data = judge(kRules, {.of = Of::kTrial, .exit_code = 3});
  EXPECT_EQ(data.of, Of::kData);
  EXPECT_EQ(data.rule, 1u);
}

TEST(Failure, ShellsSaySignalsAsExitCodes) {
  EXPECT_EQ(judge(kRules, {.exit_code = 128 + SIGSEGV}).rule, 4u);
  EXPECT_EQ(judge(rules(R"([["signal SEGV", 0], ["exit 139", 2]])"), {.exit_code = 139}).rule, 1u)
      << "a rule for the code itself goes first";
}

TEST(Failure, RulesThatRunInACircleEnd) {
  const auto circle = rules(R"([["resources", "data"], ["data", "resources"]])");
  EXPECT_FALSE(judge(circle, {.of = Of::kData}).rule);
}

}  // namespace
}  // namespace abl::protocol
