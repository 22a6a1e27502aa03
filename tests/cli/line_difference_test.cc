// SPDX-License-Identifier: Apache-2.0
#include "cli/line_difference.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace abl::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> lines(const ablate::v1::LineHunk& hunk) {
  return {hunk.lines().begin(), hunk.lines().end()};
}

std::string numbered(int count, const std::function<std::string(int)>& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text(i) + "\n";
  return all;
}

/// What `patch` would make of the earlier text.
std::string patched(const std::string& before, const ablate::v1::SweepDifference& difference) {
  std::vector<std::string> old;
  for (std::size_t at = 0; at < before.size();) {
    const std::size_t end = std::min(before.find('\n', at), before.size() - 1) + 1;
    old.push_back(before.substr(at, end - at));
    at = end;
  }
  std::string after;
  std::size_t at = 0;
  char sign = ' ';
  for (const auto& hunk : difference.hunks()) {
    const std::size_t begin = hunk.before_line() - (hunk.before_lines() > 0 ? 1 : 0);
    while (at < begin) after += old.at(at++);
    for (const std::string& line : hunk.lines()) {
      if (line.starts_with('\\')) {
        if (sign != '-') after.pop_back();
        continue;
      }
      sign = line.at(0);
      const std::string text = line.substr(1);
      if (sign != '+') {
        EXPECT_EQ(old.at(at++).substr(0, text.size()), text);
      }
      if (sign != '-') after += text + "\n";
    }
  }
  while (at < old.size()) after += old.at(at++);
  return after;
}

TEST(LineDifference, HasThreeLinesAroundWhatDiffers) {
  const auto line = [](int i) { return fmt::format("line {}", i); };
  const std::string before = numbered(20, line);
  const auto after = numbered(20, [&](int i) { return i == 9 ? "other" : line(i); });
  const auto difference = line_difference(before, after);
  EXPECT_EQ(difference.added(), 1u);
  EXPECT_EQ(difference.removed(), 1u);
  ASSERT_THAT(difference.hunks(), SizeIs(1));
  const auto& hunk = difference.hunks(0);
  EXPECT_THAT(lines(hunk), ElementsAre(" line 6", " line 7", " line 8", "-line 9", "+other", " line 10",
                                       " line 11", " line 12"));
  EXPECT_EQ(hunk.before_line(), 7u);
  EXPECT_EQ(hunk.before_lines(), 7u);
  EXPECT_EQ(hunk.after_line(), 7u);
  EXPECT_EQ(hunk.after_lines(), 7u);
}

TEST(LineDifference, ChangesThatAreNearShareAHunkAndOthersDoNot) {
  const auto line = [](int i) { return fmt::format("line {}", i); };
  const std::string before = numbered(40, line);
  const auto change = [&](int first, int second) {
    return line_difference(
        before, numbered(40, [&](int i) { return i == first || i == second ? "other" : line(i); }));
  };
  EXPECT_THAT(change(10, 17).hunks(), SizeIs(1)) << "six lines between";
  EXPECT_THAT(change(10, 18).hunks(), SizeIs(2)) << "seven";
}

TEST(LineDifference, OfEqualTextsIsNothing) {
  for (const std::string text : {"", "a", "a\n", "\n\n"})
    EXPECT_THAT(line_difference(text, text).hunks(), IsEmpty());
}

TEST(LineDifference, SaysAMissingLineFeedAndCarriageReturns) {
  EXPECT_THAT(lines(line_difference("a\nb\n", "a\nb").hunks(0)),
              ElementsAre(" a", "-b", "+b", "\\ No newline at end of file"));
  EXPECT_THAT(lines(line_difference("a\r\n", "a\n").hunks(0)), ElementsAre("-a\r", "+a"));
}

TEST(LineDifference, OfAnEmptyTextSaysWhereLinesWouldStand) {
  const auto all = line_difference("", "a\nb\n").hunks(0);
  EXPECT_EQ(all.before_line(), 0u);
  EXPECT_EQ(all.before_lines(), 0u);
  EXPECT_EQ(all.after_line(), 1u);
  const auto middle = line_difference("1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n6\n").hunks(0);
  EXPECT_EQ(middle.before_line(), 3u);
  EXPECT_EQ(middle.after_line(), 3u);
}

TEST(LineDifference, MakesTheLaterTextOfTheEarlierOne) {
  std::vector<std::string> texts{"", "\n", "a", "a\n", "b\na\n", "x\ny\nx\ny\n", "y\nx\ny\nx\nx\n", "a\r\nb"};
  for (const int step : {2, 3, 7})  // lines that are there often, and others
    texts.push_back(
        numbered(60, [&](int i) { return i % step == 0 ? "same" : fmt::format("{}", i * step % 41); }));
  for (const std::string& before : texts)
    for (const std::string& after : texts)
      EXPECT_EQ(patched(before, line_difference(before, after)), after) << before << "=>\n" << after;
}

TEST(LineDifference, TakesFilesOfManyLines) {
  const auto before = numbered(10'000, [](int i) { return fmt::format("{}", i); });
  const auto half = numbered(10'000, [](int i) { return fmt::format("{}{}", i % 2 ? "x" : "", i); });
  const auto difference = line_difference(before, half);
  EXPECT_EQ(difference.added(), 5000u);
  EXPECT_EQ(patched(before, difference), half);
  const auto often = numbered(10'000, [](int i) { return fmt::format("{}", i % 100); });
  const auto others = numbered(10'000, [](int i) { return fmt::format("{}", i * 7 % 99); });
  EXPECT_EQ(patched(often, line_difference(often, others)), others);
}

}  // namespace
}  // namespace abl::cli
