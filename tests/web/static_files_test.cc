// SPDX-License-Identifier: Apache-2.0
#include "web/server/static_files.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "web/server/encoding.h"

namespace abl::web {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr EmbeddedFile kFiles[] = {
    {"assets/index-1a2b.js", "let x;", R"("js-tag")"},
    {"favicon.svg", "<svg/>", R"("svg-tag")"},
    {"index.html", R"(<!doctype html><meta name="ablate-place" content="" />)", R"("html-tag")"}};
/// The page as it is sent where the events stand at "8f-17".
constexpr const char* kPage = R"(<!doctype html><meta name="ablate-place" content="8f-17" />)";
constexpr std::string_view kPages[] = {"runs/*", "sweeps", "sweeps/*", "workers"};

Answer get(std::string_view address, bool wants_page = false) {
  return static_answer({kFiles, kPages}, parse_target(address), wants_page, "8f-17");
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
    EXPECT_EQ(answer.body, kPage) << address;
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
  EXPECT_THAT(get("/favicon.svg").headers, Contains(Pair("ETag", R"("svg-tag")")));
  for (const char* tags : {R"("svg-tag")", R"(W/"svg-tag")", R"("other", "svg-tag")", "*"}) {
    const Answer answer = sent("/favicon.svg", tags);
    EXPECT_EQ(answer.status, 304) << tags;
    EXPECT_EQ(answer.body, "") << tags;
    EXPECT_THAT(answer.headers, Contains(Pair("ETag", R"("svg-tag")"))) << tags;
  }
  EXPECT_EQ(sent("/favicon.svg", R"("old-tag")").status, 200);
  EXPECT_EQ(sent("/favicon.svg", R"("old-tag")").cache, "no-cache") << "as the file has it";

  // the page says where the events stand: it is the same until something changes
  const Answer page = sent("/", "");
  const auto tag = std::ranges::find(page.headers, "ETag", &std::pair<std::string, std::string>::first);
  ASSERT_NE(tag, page.headers.end());
  EXPECT_EQ(sent("/", tag->second).status, 304);
  EXPECT_EQ(sent("/", R"("html-tag")").body, kPage);
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
    EXPECT_EQ(answer.body, kPage) << address;
  }
}

TEST(StaticFiles, SayThatThePagesWereLeftOutOfTheBuild) {
  const Answer answer = static_answer({}, parse_target("/"), true, "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("left out of this build"));
  EXPECT_EQ(static_answer({}, parse_target("/assets/index.js"), true, "").status, 404);
}

}  // namespace
}  // namespace abl::web
