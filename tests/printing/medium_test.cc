// SPDX-License-Identifier: Apache-2.0
#include "printing/medium.h"

#include <gtest/gtest.h>

namespace abl::printing {
namespace {

TEST(Medium, WidthCountsCharactersAndNotEscapeSequencesOrBytes) {
  EXPECT_EQ(display_width("79.79 ± 0.12"), 12);
  EXPECT_EQ(display_width("\x1b[31mfailed\x1b[0m"), 6);
}

TEST(Medium, FitCutsAtColumnsAndClosesColours) {
  EXPECT_EQ(fit("0123456789", 10), "0123456789");
  EXPECT_EQ(fit("0123456789", 5), "0123…");
  EXPECT_EQ(fit("\x1b[31m0123456789\x1b[0m", 5), "\x1b[31m0123…\x1b[0m");
  EXPECT_EQ(fit("anything", 0), "anything") << "0 is no limit";
}

}  // namespace
}  // namespace abl::printing
