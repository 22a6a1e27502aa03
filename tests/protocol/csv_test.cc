// SPDX-License-Identifier: Apache-2.0
#include "protocol/csv.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const std::string& record, char separator = ',') {
  std::vector<std::string> texts;
  for (const CsvField& field : csv_fields(record, separator)) texts.push_back(field.text);
  return texts;
}

TEST(Csv, WhatIsWrittenIsReadAgain) {
  const std::vector<std::string> fields{"plain", "a,b", "say \"x\"", "two\nlines", "", "é"};
  std::string record;
  for (const std::string& field : fields) record += (record.empty() ? "" : ",") + csv_field(field);
  EXPECT_EQ(texts(record), fields);
  EXPECT_EQ(csv_record_length(record + "\nnext", ','), record.size() + 1);
  EXPECT_EQ(csv_record_length(record, ','), std::nullopt) << "its line end has not come";
  EXPECT_EQ(csv_number(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(csv_number(-NAN), "nan");
  EXPECT_EQ(csv_number(-INFINITY), "-inf");
}

TEST(Csv, AQuoteOpensAtTheBeginningOfAFieldAlone) {
  EXPECT_THAT(texts("5\" disk,\"a\"b,\"\""), ElementsAre("5\" disk", "ab", ""));
  const auto fields = csv_fields("x;\"a\" b;\"open", ';');
  EXPECT_EQ(fields[1].column, 3U);
  EXPECT_EQ(fields[1].behind, 6U);
  EXPECT_FALSE(fields[1].open);
  EXPECT_TRUE(fields[2].open);
  EXPECT_EQ(csv_record_length("5\" disk\n\"a\nb\"\n", ','), 8U);
  EXPECT_EQ(csv_separator("a;b\tc;d"), ';');
  EXPECT_EQ(csv_separator("a"), ',');
}

TEST(Csv, AFileHasItsRecordsOneAfterTheOther) {
  const TemporaryFolder folder;
  std::string text = "\xEF\xBB\xBF\"a\nb\",c\r\n\n";
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + ",\"" + std::string(i % 10, 'x') + "\"\n";
  write_file(folder / "t.csv", text + "last");
  CsvFile file{folder / "t.csv"};
  ASSERT_TRUE(file.next(100));
  EXPECT_EQ(file.record(), "\"a\nb\",c");
  EXPECT_EQ(file.line(), 1U);
  ASSERT_TRUE(file.next(100));
  EXPECT_EQ(file.record(), "");
  EXPECT_EQ(file.line(), 3U);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(file.next(100));
    ASSERT_EQ(texts(file.record()), (std::vector{std::to_string(i), std::string(i % 10, 'x')}));
  }
  EXPECT_TRUE(file.has_line_end());
  ASSERT_TRUE(file.next(100));
  EXPECT_EQ(file.record(), "last");
  EXPECT_EQ(file.line(), 20'004U);
  EXPECT_FALSE(file.has_line_end());
  EXPECT_FALSE(file.next(100));
}

TEST(Csv, ARecordThatIsTooLongIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "t.csv", "a\n\"" + std::string(3 << 20, 'x'));
  CsvFile file{folder / "t.csv"};
  ASSERT_TRUE(file.next(1 << 20));
  try {
    file.next(1 << 20);
    ADD_FAILURE() << "3 MiB are more than one";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("t.csv:2:1: a line of more than 1 MiB"));
  }
}

}  // namespace
}  // namespace abl::protocol
