// SPDX-License-Identifier: Apache-2.0
#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace abl {
namespace {

std::string nested(int levels, const char* open, const char* close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += "1";
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

TEST(JsonDepthTest, CountsBracketsWithinEachOther) {
  EXPECT_FALSE(is_nested_too_deep(nested(kDeepestJson, "[", "]")));
  EXPECT_TRUE(is_nested_too_deep(nested(kDeepestJson + 1, "[", "]")));
  EXPECT_TRUE(is_nested_too_deep(nested(100'000, R"({"a":)", "}")));
  EXPECT_TRUE(is_nested_too_deep(nested(60, R"([{"a":)", "}]")));
}

TEST(JsonDepthTest, BracketsSideBySideAndInTextsAreNone) {
  std::string beside = "[";
  for (int i = 0; i < 1000; ++i) beside += "[{}],";
  EXPECT_FALSE(is_nested_too_deep(beside + "1]"));
  EXPECT_FALSE(is_nested_too_deep("\"" + std::string(1000, '[') + "\""));
  EXPECT_FALSE(is_nested_too_deep(R"(["\"[[[[)" + std::string(1000, '{') + "\"]"));
  EXPECT_TRUE(is_nested_too_deep(R"(["\\",)" + std::string(1000, '{')));
}

}  // namespace
}  // namespace abl
