// SPDX-License-Identifier: Apache-2.0
#include "web/server/deltas.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/gzip.h"
#include "web/server/encoding.h"

namespace abl::web {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

std::string table(int of_row, int value) {
  json rows = json::array();
  for (int i = 0; i < 200; ++i) rows.push_back({{"id", i}, {"value", i == of_row ? value : 0}});
  return json{{"rows", rows}}.dump();
}

std::string header_of(const Answer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers)
    if (key == name) return value;
  return {};
}

class DeltasTest : public testing::Test {
 protected:
  Deltas deltas;
  Answer ask(const std::string& body, const std::string& etags, bool patch = true, bool gzip = false,
             const std::string& address = "table") {
    Answer answer{.body = body};
    encode(answer, {.gzip = gzip, .etags = etags, .patch = patch}, deltas, address);
    return answer;
  }
};

TEST_F(DeltasTest, WhoHasAnAnswerIsToldWhatChanged) {
  const Answer first = ask(table(3, 1), "");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, table(3, 1));
  const std::string etag = header_of(first, "ETag");
  const Answer next = ask(table(3, 2), "\"other\", W/" + etag);
  EXPECT_EQ(next.status, 226);
  EXPECT_EQ(next.type, "application/json-patch+json");
  EXPECT_EQ(next.cache, "no-store");
  EXPECT_EQ(header_of(next, "IM"), "json-patch");
  EXPECT_EQ(header_of(next, "Delta-Base"), etag);
  EXPECT_EQ(json::parse(next.body), json::parse(R"([{"op":"replace","path":"/rows/3/value","value":2}])"));
  EXPECT_EQ(json::parse(first.body).patch(json::parse(next.body)), json::parse(table(3, 2)));
  const Answer same = ask(table(3, 2), header_of(next, "ETag"));
  EXPECT_EQ(same.status, 304);
}

TEST_F(DeltasTest, OfManySmallAnswersTheNewestAreKept) {
  const std::string first = header_of(ask(table(0, 1), ""), "ETag");
  const auto is_known = [&] { return ask(table(0, 2), first).status == 226; };
  EXPECT_TRUE(is_known());
  for (std::size_t i = 0; i < Deltas::kMost; ++i) ask("{}", "", true, false, "address " + std::to_string(i));
  EXPECT_LT(deltas.bytes(), Deltas::kMostBytes);
  EXPECT_FALSE(is_known());
}

TEST_F(DeltasTest, OnlyWhoAsksForItAndOnlyOfTheSameAddress) {
  const std::string etag = header_of(ask(table(3, 1), ""), "ETag");
  EXPECT_EQ(ask(table(3, 2), etag, false).status, 200);
  EXPECT_EQ(ask(table(3, 2), etag, true, false, "another").status, 200);
  EXPECT_EQ(ask(table(3, 2), "\"unknown\"").status, 200);
  Answer unasked = ask(table(1, 1), "", false, false, "unasked");
  EXPECT_EQ(ask(table(1, 2), header_of(unasked, "ETag"), true, false, "unasked").status, 226)
      << "a browser that keeps answers asks for the first by itself";
}

TEST_F(DeltasTest, APatchIsCompressedAndNoLongerThanHalfTheAnswer) {
  const std::string etag = header_of(ask(table(-1, 0), ""), "ETag");
  json other = json::parse(table(-1, 0));
  for (int i = 0; i < 40; ++i) other["rows"][i]["value"] = i + 1;
  const Answer some = ask(other.dump(), etag, true, true);
  EXPECT_EQ(some.status, 226);
  EXPECT_EQ(header_of(some, "ETag").substr(0, 2), "W/");
  EXPECT_EQ(json::parse(table(-1, 0)).patch(json::parse(gunzip(some.body, 1 << 20))), other);
  for (auto& row : other["rows"]) row["value"] = 7;
  const Answer all = ask(other.dump(), etag);
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(all.body, other.dump());
  EXPECT_THAT(all.headers, Not(Contains(Key("IM"))));
}

TEST_F(DeltasTest, ErrorsAndWhatIsNoJsonAreSentAsTheyAre) {
  Answer text{.type = "text/plain", .body = std::string(5000, 'x')};
  encode(text, {.patch = true}, deltas, "log");
  EXPECT_EQ(text.status, 200);
  Answer error = error_answer(Code::kNotFound, "no such sweep");
  encode(error, {.etags = "*", .patch = true}, deltas, "table");
  EXPECT_EQ(error.status, 404);
  EXPECT_EQ(deltas.bytes(), 0u);
  const std::string etag = header_of(ask("not JSON", ""), "ETag");
  EXPECT_EQ(ask("still not JSON", etag).body, "still not JSON");
}

TEST_F(DeltasTest, WhatIsKeptIsBounded) {
  Deltas few{table(0, 1).size() * 3};
  std::string first;
  for (int i = 0; i < 50; ++i) {
    Answer answer{.body = table(0, i)};
    encode(answer, {.patch = true}, few, "table");
    if (i == 0) first = header_of(answer, "ETag");
    EXPECT_LE(few.bytes(), table(0, 1).size() * 3);
  }
  Answer late{.body = table(0, 99)};
  encode(late, {.etags = first, .patch = true}, few, "table");
  EXPECT_EQ(late.status, 200) << "what it had is forgotten";
  Answer huge{.body = json(std::string(Deltas::kLongest, 'x')).dump()};
  encode(huge, {.patch = true}, deltas, "huge");
  EXPECT_EQ(deltas.bytes(), 0u);
}

}  // namespace
}  // namespace abl::web
