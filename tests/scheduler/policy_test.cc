// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/lease_policy.h"
#include "scheduler/status.h"

namespace abl::scheduler {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::StartsWith;

TEST(LeasePolicy, AHeartbeatMustFitTwiceIntoALease) {
  EXPECT_NO_THROW((LeasePolicy{.heartbeat = 500ms, .ttl = 1000ms}.check()));
  EXPECT_THROW((LeasePolicy{.heartbeat = 501ms, .ttl = 1000ms}.check()), Error);
  EXPECT_THROW((LeasePolicy{.heartbeat = 0ms, .ttl = 1000ms}.check()), Error);
}

TEST(LeasePolicy, ARestartGivesMoreTimeThanALease) {
  const LeasePolicy policy;
  EXPECT_GT(policy.expires_after_restart(Time{}), policy.expires(Time{}));
}

TEST(LeasePolicy, ASessionIsSilentAfterAWholeLease) {
  const LeasePolicy policy;
  EXPECT_FALSE(policy.silent(Time{}, Time{} + policy.ttl - 1ms));
  EXPECT_TRUE(policy.silent(Time{}, Time{} + policy.ttl));
}

TEST(Status, AnErrorKeepsItsCodeAndItsLines) {
  const grpc::Status status = to_status(Error{Code::kInvalidArgument, "a.yaml:1:2: x\na.yaml:3:4: y"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "a.yaml:1:2: x\na.yaml:3:4: y");
}

TEST(Status, AnotherExceptionIsAnInternalError) {
  const grpc::Status status = status_of([] { throw std::runtime_error{"surprise"}; });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "surprise");
}

TEST(Status, AVeryLongLineIsCutWithinWhatATrailerHolds) {
  for (const std::size_t length : {5999, 6000, 6001, 6050, 6143, 6144, 9000}) {
    const std::string said = to_status(Error{Code::kNotFound, std::string(length, 'x')}).error_message();
    EXPECT_LE(said.size(), 6010u) << length;
    EXPECT_GE(said.size(), std::min<std::size_t>(length, 5700)) << length;
  }
}

TEST(Status, MoreProblemsThanATrailerHoldsAreCounted) {
  std::string message = "first";
  for (int i = 0; i < 1000; ++i) message += "\nsweep.yaml:1:1: a problem – among many";
  const std::string kept = to_status(Error{Code::kInvalidArgument, message}).error_message();
  EXPECT_LT(kept.size(), 8000u);
  EXPECT_THAT(kept, StartsWith("first\n"));
  const auto lines = std::count(kept.begin(), kept.end(), '\n') - 1;
  EXPECT_THAT(kept, EndsWith("\n… and " + std::to_string(1000 - lines) + " more"));
}

}  // namespace
}  // namespace abl::scheduler
