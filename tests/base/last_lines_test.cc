// SPDX-License-Identifier: Apache-2.0
#include "base/last_lines.h"

#include <gtest/gtest.h>

namespace abl {
namespace {

TEST(LastLinesTest, AreThreeThatAreNotEmptyInValidUtf8) {
  LastLines last;
  EXPECT_EQ(last.text(), "");
  last.add("one\ntwo\n\nthr");
  last.add("ee \xff\n  \nfour\n");
  EXPECT_EQ(last.text(), "two | three \uFFFD | four");
}

TEST(LastLinesTest, ALineThatHasNotEndedCountsAndABarsReturnsEndOne) {
  LastLines last;
  last.add("\r 10%\r 20%\nfailed");
  EXPECT_EQ(last.text(), " 10% |  20% | failed");
}

TEST(LastLinesTest, OfATextAreAsManyAsAreWantedInTheirOrder) {
  EXPECT_EQ(last_lines("one\ntwo\n\nthree\n", 2), (std::vector<std::string>{"two", "three"}));
  EXPECT_EQ(last_lines("one", 2), std::vector<std::string>{"one"});
  EXPECT_EQ(last_lines("\n \r", 2), std::vector<std::string>{});
}

TEST(LastLinesTest, AreBoundedHoweverMuchIsSaid) {
  LastLines last;
  last.add("first\n");
  for (int i = 0; i < 100; ++i) last.add(std::string(5000, 'y'));
  EXPECT_EQ(last.text(), std::string(1000, 'y'));
  EXPECT_EQ(last.bytes().size(), 1000U);
}

TEST(FirstLine, IsTheFirstThatSaysSomethingAndIsCutBetweenLetters) {
  EXPECT_EQ(first_line("\r\n \t out of memory\nand more", 100), "out of memory");
  EXPECT_EQ(first_line(" \n\t", 100), "");
  EXPECT_EQ(first_line("", 100), "");
  EXPECT_EQ(first_line("abcdef", 6), "abcdef");
  EXPECT_EQ(first_line("abcdefg", 6), "abcdef…");
  EXPECT_EQ(first_line("abäöü", 3), "ab…") << "ä takes two bytes";
}

}  // namespace
}  // namespace abl
