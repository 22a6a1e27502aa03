// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/table_rows.h"

#include <gmock/gmock.h>

namespace abl::metrics {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// The rows of a table as "a=1 b=2", read in pieces of so many bytes.
struct Read {
  explicit Read(std::string_view text, std::size_t piece = 1 << 20) {
    const TableRows::Taker taker{.row =
                                     [&](const TableRows::Cells& cells) {
                                       std::string row;
                                       for (const auto& [column, cell] : cells)
                                         row += (row.empty() ? "" : " ") + column + "=" + cell;
                                       rows.push_back(row);
                                     },
                                 .refuse =
                                     [&](std::string_view of, const std::string& problem) {
                                       refused.push_back(std::string{of.substr(0, 20)} + ": " + problem);
                                     }};
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
      table.read(text.substr(0, piece), taker);
    before_end = rows.size();
    table.close(taker);
  }
  TableRows table;
  std::vector<std::string> rows, refused;
  std::size_t before_end = 0;
};

TEST(TableRows, CsvHasItsColumnsInTheHeader) {
  for (const std::size_t piece : {1, 5, 1000}) {
    const Read read{
        "\xef\xbb\xbf"
        "epoch, acc ,note\r\n1,0.5,\"a, \"\"quoted\"\"\nword\"\r\n2,,\r\n\r\n3,nan\r\n",
        piece};
    EXPECT_THAT(read.rows,
                ElementsAre("epoch=1 acc=0.5 note=a, \"quoted\"\nword", "epoch=2", "epoch=3 acc=nan"));
    EXPECT_THAT(read.refused, IsEmpty());
  }
}

TEST(TableRows, TheSeparatorIsTheOneThatTheHeaderHas) {
  EXPECT_THAT((Read{"a;b\n1;0,5\n"}.rows), ElementsAre("a=1 b=0,5"));
  EXPECT_THAT((Read{"a\tb\n1\t2\n"}.rows), ElementsAre("a=1 b=2"));
  EXPECT_THAT((Read{"# made by x\n# a, b\n1,2\n# a remark\n"}.rows), ElementsAre("a=1 b=2"));
}

TEST(TableRows, TheLastLineWaitsForItsEnd) {
  const Read read{"a,b\n1,2\n3,4"};
  EXPECT_EQ(read.before_end, 1U) << "it may be cut in the middle of a number";
  EXPECT_THAT(read.rows, ElementsAre("a=1 b=2", "a=3 b=4"));
}

TEST(TableRows, AHeaderMaySayMoreColumnsLater) {
  EXPECT_THAT((Read{"step,a\n1,2\nstep,a,b\n3,4,5\n"}.rows), ElementsAre("step=1 a=2", "step=3 a=4 b=5"));
}

TEST(TableRows, JsonLinesHaveTheColumnsThatTheySay) {
  const Read read{
      "\n{\"step\": 1, \"val\": {\"acc\": 0.5, \"n\": [1]}, \"loss\": NaN}\n{\"step\": 2, \"tag\": "
      "\"x\"}\n{oops\n[1]\n"};
  EXPECT_THAT(read.rows, ElementsAre("loss=NaN step=1 val/acc=0.5", "step=2 tag=x"));
  EXPECT_THAT(read.refused, ElementsAre("{oops: not valid JSON", "[1]: expected a JSON object on each line"));
  EXPECT_THAT(read.table.columns(), ElementsAre("loss", "step", "val/acc", "tag"));
}

TEST(TableRows, SaysWhatItCannotTake) {
  EXPECT_THAT((Read{"1,2\n3,4\n"}.refused),
              ElementsAre("1,2: expected a header with the names of the columns",
                          "3,4: expected a header with the names of the columns"));
  EXPECT_THAT((Read{"a,b\n1,2,3\n4,5\n"}.refused), ElementsAre("1,2,3: 3 cells below 2 columns"));
  EXPECT_THAT((Read{"a,b\n1,\"2\n"}.refused), ElementsAre("1,\"2\n\n: a quote is not closed"));
  const Read large{"a,b\n\"" + std::string((1 << 20) + 10, 'x') + "\n1,2\n", 4096};
  EXPECT_THAT(large.rows, ElementsAre("a=1 b=2")) << "the next line is a row again";
  EXPECT_EQ(large.refused.size(), 1U);
}

}  // namespace
}  // namespace abl::metrics
