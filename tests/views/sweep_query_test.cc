// SPDX-License-Identifier: Apache-2.0
#include "views/sweep_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace abl::views {
namespace {

using storage::SweepRecord;
using testing::ElementsAre;
using testing::HasSubstr;

const Time kNow{std::chrono::hours{480'000}};

SweepRecord sweep(const std::string& name) {
  SweepRecord record{.name = name, .owner = "vera", .rows = 20, .seeds = 3};
  record.trials = {.queued = 1, .running = 2, .completed = 57};
  record.created = kNow - std::chrono::hours{48};
  return record;
}

bool matches(const std::string& text, const SweepRecord& record) {
  return SweepQuery{text, [] { return std::vector<std::string>{"acc", "Loss"}; }}.matches(record, kNow);
}

std::string refusal(const std::string& text) {
  try {
    SweepQuery{text, [] { return std::vector<std::string>{"acc", "Loss"}; }};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(SweepQuery, AWordIsAPartOfTheNameAndAPatternAllOfIt) {
  const SweepRecord msf = sweep("MSF-table-1");
  for (const char* text : {"", " ", "table", "msf", "msf*", "*-1", "m*t*1", "?sf-table-1", "name:table",
                           "-xcit", "name:\"msf-table-1\"", "***", "name!=xcit"})
    EXPECT_TRUE(matches(text, msf)) << text;
  for (const char* text : {"xcit", "table*", "*-2", "msf-table-?-", "?", "-msf", "name!=msf", "-\"table\""})
    EXPECT_FALSE(matches(text, msf)) << text;
}

TEST(SweepQuery, APatternOfManyStarsTakesNoLonger) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", sweep(std::string(5000, 'a'))));
}

TEST(SweepQuery, AllTermsHaveToHold) {
  EXPECT_TRUE(matches("state:running owner:vera rows>=20 done=95", sweep("a")));
  EXPECT_TRUE(matches("state:active -state:waiting state!=failed", sweep("a")));
  EXPECT_FALSE(matches("state:running owner:vera rows>20", sweep("a")));
  EXPECT_FALSE(matches("state:waiting", sweep("a"))) << "two trials run";
  EXPECT_TRUE(matches("age>1d age<3d age<=2d -age>50h", sweep("a")));
}

TEST(SweepQuery, ATagIsMatchedAsAWhole) {
  SweepRecord tagged = sweep("a");
  tagged.tags = {"baseline", "Paper/MSF"};
  for (const char* text : {"tag:baseline", "tag:paper/msf", "tag:paper/*", "-tag:base", "tag!=base"})
    EXPECT_TRUE(matches(text, tagged)) << text;
  for (const char* text : {"tag:base", "tag:line", "-tag:baseline", "tag:*x"})
    EXPECT_FALSE(matches(text, tagged)) << text;
  EXPECT_FALSE(matches("tag:*", sweep("untagged")));
  EXPECT_THAT(refusal("tag>a"), HasSubstr("tag: expected ':' or '!=', not '>'"));
}

TEST(SweepQuery, SaysWhetherItAsksForWhatIsArchived) {
  const auto none = [] { return std::vector<std::string>{}; };
  SweepRecord away = sweep("a");
  away.archived = kNow;
  away.pinned = true;
  for (const char* text : {"is:archived", "IS:Archived is:pinned", "is!=pinned -is:archived"})
    EXPECT_TRUE((SweepQuery{text, none}.asks_for_archived())) << text;
  for (const char* text : {"", "is:pinned", "archived"})
    EXPECT_FALSE((SweepQuery{text, none}.asks_for_archived())) << text;
  EXPECT_TRUE(matches("is:archived is:pinned", away));
  EXPECT_FALSE(matches("-is:archived", away));
  EXPECT_FALSE(matches("is:archived", sweep("a")));
  EXPECT_EQ(refusal("is:pined"), "query, at character 1: unknown mark 'pined'; did you mean 'pinned'?");
}

TEST(SweepQuery, AColumnIsAskedForBesideTheRecord) {
  const SweepQuery query{"acc>75 -loss<=0.5 rows>1", [] { return std::vector<std::string>{"acc", "Loss"}; }};
  ASSERT_EQ(query.columns().size(), 2u);
  EXPECT_EQ(query.columns()[0].column, "acc");
  EXPECT_EQ(query.columns()[1].column, "Loss") << "as the table has it";
  EXPECT_TRUE(query.columns()[1].negated);
  EXPECT_TRUE(query.matches(sweep("a"), kNow));
}

TEST(SweepQuery, AMistakeIsSaidWithItsPlaceAndTheNearestName) {
  EXPECT_EQ(refusal("msf stat:running"), "query, at character 5: unknown key 'stat'; did you mean 'state'?");
  EXPECT_EQ(refusal("state:runing"),
            "query, at character 1: unknown state 'runing'; did you mean 'running'?");
  EXPECT_THAT(refusal("ac>75"), HasSubstr("did you mean 'acc'?"));
  EXPECT_THAT(refusal("zzzzzz>75"), HasSubstr("expected state, name, owner, tag, is"));
  EXPECT_THAT(refusal("rows>many"), HasSubstr("rows: invalid number 'many'"));
  EXPECT_THAT(refusal("rows>nan"), HasSubstr("invalid number 'nan'"));
  EXPECT_THAT(refusal("rows>inf"), HasSubstr("invalid number 'inf'"));
  EXPECT_THAT(refusal("age<7"), HasSubstr("invalid age '7'; expected for example 30m"));
  EXPECT_THAT(refusal("state>failed"), HasSubstr("expected ':' or '!=', not '>'"));
  EXPECT_THAT(refusal("owner:"), HasSubstr("missing value after 'owner:'"));
  EXPECT_THAT(refusal("name:\"msf"), HasSubstr("missing closing \""));
}

TEST(SweepQuery, IsBounded) {
  EXPECT_THAT(refusal(std::string(1001, 'a')), HasSubstr("1001 bytes; the limit is 1000"));
  std::string terms;
  for (int i = 0; i < 33; ++i) terms += "a ";
  EXPECT_THAT(refusal(terms), HasSubstr("too many terms; the limit is 32"));
}

TEST(SweepOrder, IsByAKeyThenNewestFirst) {
  std::vector<SweepRecord> sweeps{sweep("b"), sweep("a"), sweep("c")};
  sweeps[0].id = 1, sweeps[1].id = 2, sweeps[2].id = 3;
  sweeps[2].rows = 5;
  const auto names_by = [&](const char* order) {
    std::ranges::sort(sweeps, sweep_order(order, kNow));
    std::vector<std::string> names;
    for (const auto& each : sweeps) names.push_back(each.name);
    return names;
  };
  EXPECT_THAT(names_by("name"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_by("-name"), ElementsAre("c", "b", "a"));
  EXPECT_THAT(names_by("rows"), ElementsAre("c", "a", "b"));
  EXPECT_THAT(names_by("-rows"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names_by("created"), ElementsAre("b", "a", "c"));
  EXPECT_THROW(sweep_order("rowz", kNow), Error);
  sweeps[0].pinned = true;
  const std::string pinned = sweeps[0].name;
  EXPECT_EQ(names_by("").front(), pinned) << "pinned ones first";
  EXPECT_EQ(names_by("created").back(), "c") << "but where another order is asked for";
}

}  // namespace
}  // namespace abl::views
