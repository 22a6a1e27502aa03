// SPDX-License-Identifier: Apache-2.0
#include "printing/grid.h"

#include <gmock/gmock.h>

#include <string>

namespace abl::printing {
namespace {

TEST(Grid, AlignsColumnsUnderTheirGroup) {
  Grid grid{{{"row"}, {"n", true}, {"a", true, "paper"}, {"b", true, "paper"}}};
  grid.add({"x", "10", "1", "2"});
  EXPECT_EQ(grid.text(),
            "         paper\n"
            "row   n  a   b\n"
            "x    10  1   2\n");
}

TEST(Grid, ARowIsOneLineWhateverItsHeadingsHave) {
  Grid grid{{{"acc\nof\tall"}}};
  grid.add({"a\nb"});
  grid.add_heading("group\n1");
  grid.add({"c"});
  EXPECT_THAT(grid.lines(), testing::SizeIs(4));
}

TEST(Grid, GoesOnBelowInTheSameColumns) {
  Grid grid{{{"row"}, {"n", true}}};
  grid.add({"a long name", "1"});
  EXPECT_EQ(grid.take_text(),
            "row          n\n"
            "a long name  1\n");
  EXPECT_EQ(grid.take_text(), "");
  grid.add({"x", "2"});
  EXPECT_EQ(grid.take_text(), "x            2\n");
}

}  // namespace
}  // namespace abl::printing
