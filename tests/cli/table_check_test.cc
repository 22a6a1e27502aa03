// SPDX-License-Identifier: Apache-2.0
// What a document says of a table that no longer follows.
#include "cli/tables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "tests/error_of.h"
#include "tests/printing/tables.h"

namespace abl::cli {
namespace {

using printing::render_table;
using printing::sample_table;
using printing::TableFormat;
using protocol::Shown;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}
TEST(TableCheck, FindsTheTablesThatHaveAMarker) {
  const auto tables =
      marked_tables(lines_of("# Results\n"
                             "<!-- ablate table a --format markdown --columns value,paper -->\n"
                             "\n"
                             "| row |\n| --- |\n| x |\n\n- a note\n"
                             "```\n<!-- ablate table shown-as-an-example -->\n```\n"
                             "<!-- ablate table \"b\" --long --stats --store=old.db -->\n"
                             "```text\nrow\nx\n```\n"),
                    "r.md");
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].sweep, "a");
  EXPECT_EQ(tables[0].begin, 3u);
  EXPECT_EQ(tables[0].end, 6u);
  EXPECT_THAT(tables[0].options.shown, ElementsAre(Shown::kValue, Shown::kPaper));
  EXPECT_EQ(tables[1].sweep, "b");
  EXPECT_TRUE(tables[1].long_form);
  EXPECT_TRUE(tables[1].stats);
  EXPECT_EQ(tables[1].store, "old.db");
  EXPECT_EQ(tables[1].begin, 13u);
  EXPECT_EQ(tables[1].end, 15u);
}

TEST(TableCheck, AMarkerMayPivotItsTable) {
  const auto tables = marked_tables(lines_of("<!-- ablate table a --pivot x,y -->\n```\nrow\n```\n"
                                             "<!-- ablate table a --pivot=none -->\n```\nrow\n```\n"),
                                    "r.md");
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(tables[0].pivot, ElementsAre("x", "y"));
  EXPECT_FALSE(tables[0].long_form);
  EXPECT_TRUE(tables[1].long_form);
}

TEST(TableCheck, AWrongMarkerIsNamedAtItsLine) {
  const auto said = [](const std::string& text) {
    return error_of([&] { marked_tables(lines_of(text), "r.md"); });
  };
  EXPECT_EQ(said("\n<!-- ablate table a --fromat text -->\n"),
            "r.md:2: unknown flag '--fromat' in the marker; expected --format, --columns, --long, --pivot, "
            "--stats, "
            "--tuning, --store, --caption or --label; did you mean '--format'?");
  EXPECT_EQ(said("<!-- ablate table --format markdown -->\n| a |\n"),
            "r.md:1: the marker names no sweep; expected 'ablate table SWEEP'");
  EXPECT_EQ(said("<!-- ablate table a --stats --format markdown -->\n| a |\n"),
            "r.md:1: --stats in a marker is of tables as text; expected no --format");
  EXPECT_EQ(said("<!-- ablate table a --format markdown -->\ntext\n"),
            "r.md:1: no table follows the marker; expected lines that begin with '|'");
  EXPECT_EQ(said("<!-- ablate table a -->\n```\nrow\n"),
            "r.md:1: no table follows the marker; expected a block between lines of ```");
  EXPECT_EQ(said("<!-- ablate table a --pivot x --long -->\n```\nrow\n```\n"),
            "r.md:1: --pivot has no long form: expected no --long or --stats beside it");
  EXPECT_EQ(said("<!-- ablate table a --pivot x,,y -->\n```\nrow\n```\n"),
            "r.md:1: pivot: expected comma-separated factors, such as groups,layout; got 'x,,y'");
  EXPECT_THAT(said("<!-- ablate table a --format markdwn -->\n| a |\n"),
              HasSubstr("did you mean 'markdown'?"));
}
TEST(TableCheck, ADifferenceHasItsLineRowAndColumn) {
  const std::string text = render_table(sample_table(), TableFormat::kMarkdown);
  std::vector<std::string> there = lines_of(text);
  std::erase_if(there, [](const std::string& line) { return !line.starts_with("|"); });  // the notes below it
  std::vector<std::string> here = there;
  here[2].replace(here[2].find("81.25"), 5, "81.35");
  here[3] += " ";  // which says the same
  const MarkedTable table{.file = "r.md", .line = 9, .format = TableFormat::kMarkdown, .begin = 10};
  auto found = differences(table, here, there, {0, 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0].text(),
      fmt::format("r.md:13:{}: row o, Original, acc (%): the file has '81.35 ± 0.35', the store '81.25 ± "
                  "0.35'",
                  here[2].find("81.35") + 1));
  here = there;
  std::swap(here[2], here[3]);
  EXPECT_EQ(differences(table, here, there, {0, 1}).size(), 1u) << "another order";
  here = there;
  here.pop_back();
  found = differences(table, here, there, {0, 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text(), HasSubstr("row a, MSF, Simplest: the file has 'no such row'"));
  here = there;
  here[0].replace(here[0].find("acc"), 3, "Acc");
  EXPECT_THAT(differences(table, here, there, {0, 1})[0].text(),
              HasSubstr("the file has 'Acc (%)', the store 'acc (%)'"));
  EXPECT_TRUE(differences(table, there, there, {0, 1}).empty());
}

TEST(TableCheck, OtherFormatsAreComparedCellByCellToo) {
  for (const TableFormat format :
       {TableFormat::kLatex, TableFormat::kCsv, TableFormat::kText, TableFormat::kHtml}) {
    const std::vector<std::string> there = lines_of(render_table(sample_table(), format));
    std::vector<std::string> here = there;
    const auto line = std::ranges::find_if(
        here, [](const std::string& text) { return text.find("81.25") != std::string::npos; });
    ASSERT_NE(line, here.end());
    line->replace(line->find("81.25"), 5, "81.35");
    const auto place = line - here.begin();
    const MarkedTable table{.file = "r", .line = 9, .format = format, .begin = 10};
    auto found = differences(table, here, there, {0, 1});
    ASSERT_EQ(found.size(), 1u) << static_cast<int>(format);
    EXPECT_THAT(found[0].says, testing::AllOf(HasSubstr("81.35"), Not(HasSubstr("Original"))));
    EXPECT_EQ(found[0].line, static_cast<std::size_t>(place) + 11);
    EXPECT_GT(found[0].at, 1u);
    here = there;
    here.erase(here.begin() + place);
    found = differences(table, here, there, {0, 1});
    ASSERT_EQ(found.size(), 1u) << "a line that is missing is one difference, whatever follows";
    EXPECT_EQ(found[0].says, "no such line");
    here = there;
    const std::string part = format == TableFormat::kLatex ? " & " : format == TableFormat::kCsv ? "," : "  ";
    here[static_cast<std::size_t>(place)] += part + "wrong" + (format == TableFormat::kHtml ? "</td>" : "");
    found = differences(table, here, there, {0, 1});
    ASSERT_EQ(found.size(), 1u) << "a line with a cell more, format " << static_cast<int>(format);
    EXPECT_THAT(found[0].says, HasSubstr("wrong"));
  }
}
}  // namespace
}  // namespace abl::cli
