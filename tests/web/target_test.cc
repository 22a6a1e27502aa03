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
  EXPECT_THAT(target.values("run"), ElementsAre("3", "1"));
  EXPECT_EQ(target.value("name"), "val/top1");
  EXPECT_EQ(target.value("absent"), std::nullopt);
}

TEST(Target, RefusesBrokenEscapesAndControlCharacters) {
  for (const char* text : {"/a%2", "/a%zz", "/%", "/x?y=%1"})
    EXPECT_THAT(message_of([&] { parse_target(text); }), HasSubstr("two hexadecimal digits")) << text;
  for (const char* text : {"/a%00b", "/x?y=%0a", "/%7f"})
    EXPECT_THAT(message_of([&] { parse_target(text); }), HasSubstr("control character")) << text;
  EXPECT_THAT(message_of([&] { parse_target("http://elsewhere/"); }), HasSubstr("not a path"));
}

TEST(Target, NamesAMisspeltParameterAndWhatWasExpected) {
  const Target target = parse_target("/runs?swep=x");
  EXPECT_EQ(message_of([&] {
              target.allow_only({"sweep", "trial"});
            }),
            "unknown parameter 'swep': expected sweep, trial");
  EXPECT_EQ(message_of([&] { target.allow_only({}); }), "unknown parameter 'swep': this address takes none");
}

TEST(Target, RefusesASingleParameterThatIsGivenTwice) {
  EXPECT_THAT(message_of([&] { (void)parse_target("/runs?trial=1&trial=2").value("trial"); }),
              HasSubstr("given 2 times"));
}

TEST(Target, ReadsWholeNumbersInTheirRangeAlone) {
  EXPECT_EQ(parse_number("run", "4294967295", 1, 4294967295), 4294967295);
  for (const char* text : {"0", "4294967296", "-1", "1.5", "1x", "", " 1", "99999999999999999999999"})
    EXPECT_THAT(message_of([&] { parse_number("run", text, 1, 4294967295); }),
                HasSubstr("is not a whole number from 1 to 4294967295"))
        << text;
}

}  // namespace
}  // namespace abl::web
