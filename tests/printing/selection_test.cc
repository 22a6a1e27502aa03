// SPDX-License-Identifier: Apache-2.0
#include "printing/selection.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/printing/tables.h"

namespace abl::printing {
namespace {

using ablate::v1::Table;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> ids(const Table& table) {
  std::vector<std::string> ids;
  for (const auto& row : table.rows()) ids.push_back(row.id());
  return ids;
}

std::vector<std::string> ids(Table table, const Selection& selection) {
  select(table, selection);
  return ids(table);
}

TEST(Selection, RowsAreInTheOrderOfAColumnAndWhatHasNoValueIsLastEitherWay) {
  const Table table = sample_table();  // o 81.25, h 79.50, a without
  EXPECT_THAT(ids(table, {.sort = "acc"}), ElementsAre("h", "o", "a"));
  EXPECT_THAT(ids(table, {.sort = "-acc"}), ElementsAre("o", "h", "a"));
  EXPECT_THAT(ids(table, {.sort = "acc.paper"}), ElementsAre("a", "o", "h"));
  EXPECT_THAT(ids(table, {.sort = "share"}), ElementsAre("h", "o", "a")) << "QKKPW, QKV-W, QQQQQ";
  EXPECT_THAT(ids(table, {.sort = "row"}), ElementsAre("a", "h", "o"));
  EXPECT_THAT(ids(table, {}), ElementsAre("o", "h", "a"));
}

TEST(Selection, WhatIsNotFiniteIsNoValue) {
  Table table = sample_table();
  table.mutable_rows(0)->mutable_cells(0)->set_mean(std::nan(""));
  EXPECT_THAT(ids(table, {.sort = "acc"}), ElementsAre("h", "o", "a"));
  table.mutable_rows(1)->mutable_cells(0)->set_mean(-INFINITY);
  EXPECT_THAT(ids(table, {.sort = "acc"}), ElementsAre("o", "h", "a")) << "as given: none has one";
}

TEST(Selection, NumbersInNamesCountAsNumbers) {
  Table table;
  for (const char* id : {"lr=10", "LR=2", "lr=2b", "lr=002", "lr"}) table.add_rows()->set_id(id);
  EXPECT_THAT(ids(table, {.sort = "row"}), ElementsAre("lr", "LR=2", "lr=002", "lr=2b", "lr=10"));
  EXPECT_THAT(ids(table, {.sort = "-row"}), ElementsAre("lr=10", "lr=2b", "LR=2", "lr=002", "lr"))
      << "equals stay as they are";
  Table signs;
  for (const char* id : {"a1", "a", "a-", "a=", "ab", "a1b", "a1-", "1"}) signs.add_rows()->set_id(id);
  EXPECT_THAT(ids(signs, {.sort = "row"}), ElementsAre("1", "a", "a-", "a1", "a1-", "a1b", "a=", "ab"));
}

TEST(Selection, IncompleteRowsGoAndThoseThatAreNotTrainedStay) {
  Table table = sample_table();
  EXPECT_THAT(ids(table, {.complete = true}), ElementsAre("o")) << "h has one of two, a none";
  table.mutable_rows(2)->mutable_cells(0)->set_of(0);
  EXPECT_THAT(ids(table, {.complete = true}), ElementsAre("o", "a"));
  table.mutable_rows(0)->mutable_cells(0)->set_unfilled(1);
  EXPECT_THAT(ids(table, {.complete = true}), ElementsAre("a"));
}

TEST(Selection, RowsAreThoseOfSomeIdsAndLinesThatHaveOne) {
  using Ids = std::set<std::string>;
  Table table = sample_table();
  EXPECT_THAT(ids(table, {.only = Ids{"a", "o", "nobody"}}), ElementsAre("o", "a"));
  EXPECT_THAT(ids(table, {.only = Ids{}}), IsEmpty()) << "of none";
  table.mutable_rows(1)->mutable_cells(0)->set_row("level-2");
  EXPECT_THAT(ids(table, {.only = Ids{"level-2"}}), ElementsAre("h"));
}

TEST(Selection, RowsAreFoundByAllWordsInNamesGroupsAndSettings) {
  Table table = sample_table();
  table.mutable_rows(0)->set_group("Transformers");
  EXPECT_THAT(ids(table, {.find = "msf"}), ElementsAre("h", "a"));
  EXPECT_THAT(ids(table, {.find = "  SIMPLEST msf\t"}), ElementsAre("a"));
  EXPECT_THAT(ids(table, {.find = "qkkpw"}), ElementsAre("h"));
  EXPECT_THAT(ids(table, {.find = "transformers"}), ElementsAre("o"));
  EXPECT_THAT(ids(table, {.find = "81.25"}), IsEmpty()) << "a value is no name";
  EXPECT_THAT(ids(table, {.find = " "}), ElementsAre("o", "h", "a"));
}

TEST(Selection, ColumnsGoWithTheirCells) {
  Table table = sample_table();
  select(table, {.without = {"params"}});
  ASSERT_EQ(table.columns_size(), 2);
  EXPECT_EQ(table.columns(1).name(), "share");
  for (const auto& row : table.rows()) ASSERT_EQ(row.cells_size(), 2);
  EXPECT_EQ(table.rows(0).cells(0).text(), "81.25 ± 0.35");
  EXPECT_EQ(table.rows(0).cells(1).text(), "QKV-W");
}

TEST(Selection, AnUnknownColumnIsNamedWithTheNearest) {
  const auto said = [](const Selection& selection) -> std::string {
    Table table = sample_table();
    try {
      select(table, selection);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said({.sort = "-parms"}),
            "the table of msf-sharing has no column 'parms'; expected acc, params or share; did you mean "
            "'params'?");
  EXPECT_EQ(said({.without = {"shar"}}),
            "the table of msf-sharing has no column 'shar'; expected acc, params or share; did you mean "
            "'share'?");
}

}  // namespace
}  // namespace abl::printing
