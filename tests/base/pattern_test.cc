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

std::vector<std::string> found_by(const std::string& pattern, const std::string& line) {
  std::vector<std::optional<std::string_view>> parts;
  std::vector<std::string> found;
  if (GroupPattern{pattern}.find(line, parts))
    for (const auto& part : parts) found.emplace_back(part ? *part : "(none)");
  return found;
}

TEST(GroupPattern, NamedGroupsAreThoseOfPerlAndOfPython) {
  using testing::ElementsAre;
  EXPECT_THAT(GroupPattern{"(?<step>\\d+) (x) (?P<acc>.*)"}.groups(), ElementsAre("step", "acc"));
  EXPECT_THAT(found_by("(?<step>\\d+) (x) (?P<acc>.*)", "at 12 x 0.5"), ElementsAre("12", "0.5"));
  EXPECT_THAT(found_by("(?:a=(?<a>\\d)|b=(?<b>\\d))", "b=4"), ElementsAre("(none)", "4"));
  EXPECT_THAT(found_by("x(?<a>\\d)", "y1"), ElementsAre());
  EXPECT_THAT(found_by("\\(?<(?<a>\\d)[(?<]", "<1("), ElementsAre("1"))
      << "an escaped bracket opens no group";
  EXPECT_THAT(found_by("[](?<x>]+ (?<a>\\d)", "(?<x> 3"), ElementsAre("3")) << "nor one in a class";
  EXPECT_THAT(found_by("\xff (?<a>\\d)", "\xff 3"), ElementsAre("3")) << "logs hold any bytes";
}

TEST(GroupPattern, SaysWhatIsWrongWithIt) {
  EXPECT_NE(GroupPattern{"(?<a>x"}.problem(), "");
  EXPECT_THAT(found_by("x(?<a>\\d)|y(?<a>\\d)", "y2"), testing::ElementsAre("(none)", "2"))
      << "two of one name";
  EXPECT_NE(GroupPattern{"(?<=x)(?<a>y)"}.problem(), "") << "RE2 does not look back";
  EXPECT_THAT(GroupPattern{"(?<a>x"}.groups(), testing::IsEmpty());
  EXPECT_EQ(GroupPattern{"x"}.problem(), "");
}

}  // namespace
}  // namespace abl
