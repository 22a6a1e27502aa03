// SPDX-License-Identifier: Apache-2.0
#include "views/query.h"

#include <gmock/gmock.h>

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

constexpr Parameter kDeclared[] = {
    {.name = "run", .about = "Of these runs", .number = Range{.lowest = 1}, .needed = true, .repeats = true},
    {.name = "name", .about = "Of this name alone"},
    {.name = "limit", .about = "So many at most", .number = Range{.highest = 1000, .otherwise = 200}},
    {.name = "offset", .about = "From here on", .number = Range{.highest = 1ULL << 40, .otherwise = 0}}};

using Sent = std::vector<std::pair<std::string, std::string>>;

Query asked(const Sent& parameters) { return {.name = {}, .parameters = parameters, .declared = kDeclared}; }
std::string refusal_of(const Sent& parameters) {
  return refusal([&] { asked(parameters).check(); });
}

TEST(Query, ReadsWhatWasSentAsItIsDeclared) {
  const Query query = asked({{"run", "3"}, {"run", "1"}, {"name", "val/top1"}, {"offset", "1099511627776"}});
  query.check();
  EXPECT_THAT(query.numbers("run"), ElementsAre(3, 1)) << "in the order sent";
  EXPECT_EQ(query.text("name"), "val/top1");
  EXPECT_EQ(query.long_number("offset"), 1ULL << 40);
  EXPECT_TRUE(query.has("name"));
}

TEST(Query, WhatWasNotSentIsWhatIsDeclaredForThat) {
  const Query query = asked({{"run", "3"}});
  EXPECT_EQ(query.number("limit"), 200);
  EXPECT_EQ(query.text("name"), "");
  EXPECT_FALSE(query.has("name"));
}

TEST(Query, NamesAMisspeltParameterAndWhatWasExpected) {
  EXPECT_EQ(refusal_of({{"run", "1"}, {"nam", "x"}}),
            "unknown parameter 'nam': expected run, name, limit or offset; did you mean 'name'?");
  EXPECT_EQ(refusal([] {
              Query{.name = {}, .parameters = {{"swep", "x"}}, .declared = {}}.check();
            }),
            "unknown parameter 'swep': this address takes none");
}

TEST(Query, RefusesASingleParameterThatIsGivenTwice) {
  EXPECT_EQ(refusal_of({{"run", "1"}, {"name", "a"}, {"name", "b"}}),
            "parameter 'name' is given 2 times, expected once");
  EXPECT_EQ(refusal_of({{"run", "1"}, {"run", "2"}}), "");
}

TEST(Query, SaysWhatIsMissing) { EXPECT_EQ(refusal_of({}), "parameter 'run' is missing: Of these runs"); }

TEST(Query, RefusesANumberOutOfBoundsBeforeItIsRead) {
  for (const char* text : {"1001", "-1", "", "1e2", "18446744073709551616"})
    EXPECT_THAT(refusal_of({{"run", "1"}, {"limit", text}}),
                HasSubstr("is not a whole number from 0 to 1000"))
        << text;
  EXPECT_THAT(refusal_of({{"run", "1"}, {"run", "0"}}), HasSubstr("from 1 to 4294967295"));
}

TEST(Query, AChoiceIsOneOfItsNames) {
  static const std::vector<std::string> kTests{"welch", "paired"};
  const std::vector<Parameter> declared{{.name = "test", .about = "How it is tested", .choices = kTests}};
  const auto refused = [&](const char* text) {
    return refusal([&] { Query{.name = {}, .parameters = {{"test", text}}, .declared = declared}.check(); });
  };
  EXPECT_EQ(refused("paired"), "");
  EXPECT_EQ(refused(""), "") << "as if it were not sent";
  EXPECT_THAT(refused("welsh"),
              HasSubstr("unknown test 'welsh'; expected welch or paired; did you mean 'welch'?"));
}

TEST(Query, WhatIsReadButNotDeclaredIsAMistakeOfOurs) { EXPECT_THROW((void)asked({}).text("nam"), Error); }

TEST(Query, ReadsWholeNumbersInTheirRangeAlone) {
  EXPECT_EQ(parse_number("run", "4294967295", 1, 4294967295), 4294967295);
  for (const char* text : {"0", "4294967296", "-1", "1.5", "1x", "", " 1", "99999999999999999999999"})
    EXPECT_THAT(refusal([&] { parse_number("run", text, 1, 4294967295); }),
                HasSubstr("is not a whole number from 1 to 4294967295"))
        << text;
}

}  // namespace
}  // namespace abl::views
