// SPDX-License-Identifier: Apache-2.0
#include "web/server/encoding.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/gzip.h"

namespace abl::web {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

std::string long_text() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\"value\":" + std::to_string(i) + "},";
  return text;
}

std::string header(const Answer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers)
    if (key == name) return value;
  return {};
}

TEST(Encoding, AClientSaysWhatItTakes) {
  for (const char* yes : {"gzip", "deflate, gzip;q=1.0, *;q=0.5", "GZIP, gzip", "br;q=1, gzip ;q=0.8", "*",
                          "x-gzip", "gzip;q="})
    EXPECT_TRUE(taken_by(yes, "").gzip) << yes;
  for (const char* no :
       {"", "identity", "br, zstd", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "gzipped", ", ,;"})
    EXPECT_FALSE(taken_by(no, "").gzip) << no;
}

TEST(Encoding, AClientSaysWhetherItTakesAPatch) {
  for (const char* yes : {"json-patch", "vcdiff, json-patch;q=0.5", " json-patch "})
    EXPECT_TRUE(taken_by("", "", yes).patch) << yes;
  for (const char* no : {"", "vcdiff", "json-patch;q=0", "json-patches", "*"})
    EXPECT_FALSE(taken_by("", "", no).patch) << no;
  EXPECT_THAT(tags_in(R"("a", W/"b" ,,"c")"), testing::ElementsAre("\"a\"", "\"b\"", "\"c\""));
}

TEST(Encoding, TextIsCompressedWhereItIsTakenAndLongEnough) {
  Answer answer{.body = long_text()};
  encode(answer, {.gzip = true});
  EXPECT_EQ(header(answer, "Content-Encoding"), "gzip");
  EXPECT_EQ(header(answer, "Vary"), "Accept-Encoding");
  EXPECT_LT(answer.body.size(), long_text().size() / 3);
  EXPECT_EQ(gunzip(answer.body, 1 << 20), long_text());
  for (Answer plain : {Answer{.body = "{}"}, Answer{.type = "image/png", .body = long_text()},
                       Answer{.status = 404, .body = long_text()}}) {
    const std::string before = plain.body;
    encode(plain, {.gzip = true});
    EXPECT_EQ(plain.body, before);
    EXPECT_EQ(header(plain, "Content-Encoding"), "");
  }
}

TEST(Encoding, TheFormInBrotliThatIsThereIsSentToWhoTakesIt) {
  const Answer file{.body = long_text(), .headers = {{"ETag", "\"tag\""}}, .brotli = "compressed"};
  for (const char* accept : {"gzip, deflate, br, zstd", "br"}) {
    Answer answer = file;
    encode(answer, taken_by(accept, ""));
    EXPECT_EQ(answer.body, "compressed") << accept;
    EXPECT_EQ(header(answer, "Content-Encoding"), "br");
    EXPECT_EQ(header(answer, "ETag"), "W/\"tag\"");
    EXPECT_EQ(header(answer, "Vary"), "Accept-Encoding");
  }
  Answer other = file, known = file, plain = file;
  encode(other, taken_by("gzip, br;q=0", ""));
  EXPECT_EQ(gunzip(other.body, 1 << 20), long_text());
  encode(known, taken_by("br", "W/\"tag\""));
  EXPECT_EQ(known.status, 304);
  EXPECT_EQ(header(known, "ETag"), "W/\"tag\"");
  encode(plain, taken_by("", ""));
  EXPECT_EQ(plain.body, long_text());
}

TEST(Encoding, WhatTheClientHasIsNotSentAgain) {
  Answer first{.body = long_text()}, compressed{.body = long_text()};
  encode(first, {});
  encode(compressed, {.gzip = true});
  const std::string tag = header(first, "ETag");
  EXPECT_THAT(tag, SizeIs(26));
  EXPECT_EQ(header(compressed, "ETag"), "W/" + tag);
  EXPECT_EQ(first.cache, "private, no-cache");
  for (const auto& tags : {tag, "W/" + tag, "\"other\", " + tag, std::string{"*"}})
    for (const bool gzip : {false, true}) {
      Answer again{.body = long_text()};
      encode(again, {.gzip = gzip, .etags = tags});
      EXPECT_EQ(again.status, 304);
      EXPECT_THAT(again.body, IsEmpty());
      EXPECT_THAT(again.headers, Not(Contains(Key("Content-Encoding"))));
    }
  Answer changed{.body = long_text() + " "};
  encode(changed, {.etags = tag});
  EXPECT_EQ(changed.status, 200);
  EXPECT_NE(header(changed, "ETag"), tag);
}

TEST(Encoding, AnErrorIsNeverKept) {
  Answer answer = error_answer(Code::kNotFound, "no such sweep");
  encode(answer, {.gzip = true, .etags = "*"});
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.cache, "no-store");
  EXPECT_EQ(header(answer, "ETag"), "");
}

TEST(Encoding, BytesThatAreNoGzipAreSaidToBe) {
  EXPECT_EQ(gunzip(gzip("", 1), 10), "");
  EXPECT_THROW(gunzip("hello", 100), Error);
  EXPECT_THROW(gunzip(gzip("hello", 6), 4), Error) << "more than it may hold";
  std::string cut = gzip(long_text(), 6);
  cut.resize(cut.size() / 2);
  EXPECT_THROW(gunzip(cut, 1 << 20), Error);
}

}  // namespace
}  // namespace abl::web
