// SPDX-License-Identifier: Apache-2.0
#include "base/pattern.h"

#include <gmock/gmock.h>

namespace abl {
namespace {

TEST(Pattern, IsSearchedForInEachLine) {
  const Pattern error{"^NCCL error .* unhandled$"};
  EXPECT_EQ(error.problem(), "");
  EXPECT_TRUE(error.is_in("step 1\nNCCL error 7: unhandled\nbye"));
  EXPECT_FALSE(error.is_in("step 1\nNCCL error 7:\n unhandled\nbye")) << "a dot is no line end";
  EXPECT_TRUE(Pattern{"caf\xc3\xa9"}.is_in("\xff caf\xc3\xa9 \x80")) << "logs hold any bytes";
}

TEST(Pattern, SaysWhatIsWrongWithIt) {
  EXPECT_THAT(Pattern{"a(b"}.problem(), testing::HasSubstr("missing )"));
  EXPECT_THAT(Pattern{"a)|(b"}.problem(), testing::HasSubstr("unexpected )"));
  EXPECT_NE(Pattern{"(a)\\1"}.problem(), "");
  EXPECT_NE(Pattern{"(?:a{1000}){1000}"}.problem(), "") << "it would take too much memory";
  EXPECT_EQ(Pattern{std::string(1001, 'a')}.problem(), "longer than 1,000 bytes");
  EXPECT_FALSE(Pattern{"a(b"}.is_in("a(b"));
}

TEST(Pattern, ThatWouldTakeOthersForEverTakesTimeInProportionToTheText) {
  EXPECT_FALSE(Pattern{"(a*)*(a|b)*(a+)+$x"}.is_in(std::string(1 << 16, 'a')));
}

}  // namespace
}  // namespace abl
