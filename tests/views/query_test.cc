// SPDX-License-Identifier: Apache-2.0
#include "views/query.h"

#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "base/error.h"

namespace abl::views {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Query, KeepsRepeatedParametersInOrder) {
  const Query query{.parameters = {{"run", "3"}, {"run", "1"}, {"name", "val/top1"}, {"empty", ""}}};
  EXPECT_THAT(query.values("run"), ElementsAre("3", "1"));
  EXPECT_EQ(query.value("name"), "val/top1");
  EXPECT_EQ(query.value("absent"), std::nullopt);
}

TEST(Query, NamesAMisspeltParameterAndWhatWasExpected) {
  const Query query{.parameters = {{"swep", "x"}}};
  const std::array<std::string_view, 2> names{"sweep", "trial"};
  EXPECT_EQ(refusal([&] { query.allow_only(names); }), "unknown parameter 'swep': expected sweep, trial");
  EXPECT_EQ(refusal([&] { query.allow_only({}); }), "unknown parameter 'swep': this address takes none");
}

TEST(Query, RefusesASingleParameterThatIsGivenTwice) {
  EXPECT_THAT(refusal([&] {
                (void)Query{.parameters = {{"trial", "1"}, {"trial", "2"}}}.value("trial");
              }),
              HasSubstr("given 2 times"));
}

TEST(Query, ReadsWholeNumbersInTheirRangeAlone) {
  EXPECT_EQ(parse_number("run", "4294967295", 1, 4294967295), 4294967295);
  for (const char* text : {"0", "4294967296", "-1", "1.5", "1x", "", " 1", "99999999999999999999999"})
    EXPECT_THAT(refusal([&] { parse_number("run", text, 1, 4294967295); }),
                HasSubstr("is not a whole number from 1 to 4294967295"))
        << text;
}

}  // namespace
}  // namespace abl::views
