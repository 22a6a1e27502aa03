// SPDX-License-Identifier: Apache-2.0
#include "web/server/static_files.h"

#include <gmock/gmock.h>

#include "web/server/encoding.h"

namespace abl::web {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr EmbeddedFile kFiles[] = {{"assets/index-1a2b.js", "let x;", R"("js-tag")"},
                                   {"favicon.svg", "<svg/>", R"("svg-tag")"},
                                   {"index.html", "<!doctype html>", R"("html-tag")"}};
constexpr std::string_view kPages[] = {"runs/*", "sweeps", "sweeps/*", "workers"};

Answer get(std::string_view address, bool wants_page = false) {
  return static_answer({kFiles, kPages}, parse_target(address), wants_page);
}
/// As it is sent to who says that they have these tags.
Answer sent(std::string_view address, std::string_view if_none_match) {
  Answer answer = get(address);
  encode(answer, taken_by("", if_none_match));
  return answer;
}

TEST(StaticFiles, AnswerTheAppsOwnAddressesWithItsPage) {
  for (const char* address :
       {"/", "/index.html", "/sweeps", "/sweeps/a%2Fb", "/sweeps/x?sort=-acc", "/runs/12", "/workers"}) {
    const Answer answer = get(address);
    EXPECT_EQ(answer.status, 200) << address;
    EXPECT_EQ(answer.body, "<!doctype html>") << address;
    EXPECT_EQ(answer.type, "text/html; charset=utf-8") << address;
    EXPECT_EQ(answer.cache, "no-cache") << address;
  }
}

TEST(StaticFiles, MayBeKeptForEverWhenTheirNameHasTheirHash) {
  const Answer answer = get("/assets/index-1a2b.js");
  EXPECT_EQ(answer.type, "text/javascript; charset=utf-8");
  EXPECT_EQ(answer.cache, "public, max-age=31536000, immutable");
  EXPECT_EQ(get("/favicon.svg").type, "image/svg+xml");
  EXPECT_EQ(get("/favicon.svg").cache, "no-cache");
}

TEST(StaticFiles, AreNotSentAgainToWhoHasThem) {
  EXPECT_THAT(get("/").headers, Contains(Pair("ETag", R"("html-tag")")));
  for (const char* tags : {R"("html-tag")", R"(W/"html-tag")", R"("other", "html-tag")", "*"}) {
    const Answer answer = sent("/", tags);
    EXPECT_EQ(answer.status, 304) << tags;
    EXPECT_EQ(answer.body, "") << tags;
    EXPECT_THAT(answer.headers, Contains(Pair("ETag", R"("html-tag")"))) << tags;
  }
  EXPECT_EQ(sent("/", R"("old-tag")").status, 200);
  EXPECT_EQ(sent("/", R"("old-tag")").cache, "no-cache") << "as the file has it";
}

TEST(StaticFiles, AreFoundByTheirExactNameAlone) {
  for (const char* address : {"/../etc/passwd", "/assets/../../etc/passwd", "/assets/..%2f..%2fetc%2fpasswd",
                              "/%2e%2e/%2e%2e/etc/passwd", "/assets", "/assets/", "/runs/1/2",
                              "/assets/index-1a2b.js/x", "/sweepsx", "/etc/passwd"}) {
    const Answer answer = get(address);
    EXPECT_EQ(answer.status, 404) << address;
    EXPECT_THAT(answer.body, HasSubstr("NOT_FOUND")) << address;
  }
}

TEST(StaticFiles, ShowABrowserThatThereIsNoSuchPage) {
  for (const char* address : {"/nothing", "/runs/1/2", "/sweepsx", "/%2e%2e/etc/passwd"}) {
    const Answer answer = get(address, true);
    EXPECT_EQ(answer.status, 404) << address;
    EXPECT_EQ(answer.type, "text/html; charset=utf-8") << address;
    EXPECT_EQ(answer.body, "<!doctype html>") << address;
  }
}

TEST(StaticFiles, SayThatThePagesWereLeftOutOfTheBuild) {
  const Answer answer = static_answer({}, parse_target("/"), true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("left out of this build"));
  EXPECT_EQ(static_answer({}, parse_target("/assets/index.js"), true).status, 404);
}

}  // namespace
}  // namespace abl::web
