// SPDX-License-Identifier: Apache-2.0
#include "web/server/target.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace abl::web {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Target, SplitsAtSlashesBeforeItDecodes) {
  const Target target = parse_target("/sweeps/a%2Fb%20c//table");
  EXPECT_THAT(target.path, ElementsAre("sweeps", "a/b c", "table"));
}

TEST(Target, KeepsRepeatedParametersInOrder) {
  const Target target = parse_target("/metrics?run=3&run=1&name=val%2Ftop1&empty=&flag&&x=a+b");
  EXPECT_THAT(target.query, ElementsAre(Pair("run", "3"), Pair("run", "1"), Pair("name", "val/top1"),
                                        Pair("empty", ""), Pair("flag", ""), Pair("x", "a b")));
}

TEST(Target, RefusesBrokenEscapesAndControlCharacters) {
  for (const char* text : {"/a%2", "/a%zz", "/%", "/x?y=%1"})
    EXPECT_THAT(message_of([&] { parse_target(text); }), HasSubstr("two hexadecimal digits")) << text;
  for (const char* text : {"/a%00b", "/x?y=%0a", "/%7f"})
    EXPECT_THAT(message_of([&] { parse_target(text); }), HasSubstr("control character")) << text;
  EXPECT_THAT(message_of([&] { parse_target("http://elsewhere/"); }), HasSubstr("not a path"));
}

TEST(Target, MatchesAPatternSegmentBySegment) {
  const auto matched = [](std::string_view pattern, std::string_view target) {
    return match(pattern, parse_target(target).path);
  };
  EXPECT_EQ(matched("sweeps", "/sweeps?first=1"), "");
  EXPECT_EQ(matched("sweeps/*/table", "/sweeps/a%2Fb/table"), "a/b");
  EXPECT_EQ(matched("sweeps/*", "/sweeps"), std::nullopt);
  EXPECT_EQ(matched("sweeps/*", "/sweeps/a/table"), std::nullopt);
  EXPECT_EQ(matched("sweeps/*/table", "/sweeps/a/tables"), std::nullopt);
}

}  // namespace
}  // namespace abl::web
