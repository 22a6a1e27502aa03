// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace abl {
namespace {

TEST(ErrorTest, SystemErrorSaysWhatAndWhy) {
  const Error error = system_error("cannot open x", ENOENT);
  EXPECT_STREQ(error.what(), "cannot open x: No such file or directory");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(system_error("", ENOSPC).code(), Code::kResourceExhausted);
  EXPECT_EQ(system_error("", EACCES).code(), Code::kPermissionDenied);
  EXPECT_EQ(system_error("", EADDRINUSE).code(), Code::kUnavailable);
}

TEST(ErrorTest, ExitCodesAreThoseOfTheHelpTexts) {
  EXPECT_EQ(exit_code(Code::kOk), 0);
  EXPECT_EQ(exit_code(Code::kInternal), 1);
  EXPECT_EQ(exit_code(Code::kInvalidArgument), 2);
  EXPECT_EQ(exit_code(Code::kNotFound), 2);
  EXPECT_EQ(exit_code(Code::kUnavailable), 3);
  EXPECT_EQ(exit_code(Code::kCancelled), 130);
}

}  // namespace
}  // namespace abl
