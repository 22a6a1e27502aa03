// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// CSV (RFC 4180), as it is written here and read everywhere: a field may be quoted, and then have
/// separators, line ends and, twice, quotes in it.
namespace abl::protocol {

/// A field of a line, quoted where it has to be.
std::string csv_field(const std::string& text);
/// As many digits as give the same number again; "nan", "inf", "-inf".
std::string csv_number(double value);

/// Comma, semicolon or tab: whichever a header has most of.
char csv_separator(std::string_view header);
/// Length of the record that a text begins with, its line end included; nothing where that has not come.
std::optional<std::size_t> csv_record_length(std::string_view text, char separator);

struct CsvField {
  std::string text{};
  std::size_t column = 1;  ///< where it begins, in bytes from 1
  bool quoted = false;
  std::size_t behind = 0;  ///< column of text behind its closing quote, which is taken into it; 0: none
  bool open = false;       ///< its quote is never closed
};
/// Of a record without its line end.
std::vector<CsvField> csv_fields(std::string_view record, char separator);

/// The records of a file, one after the other. Thread: one.
class CsvFile {
 public:
  /// Throws: Error where it cannot be read.
  explicit CsvFile(const std::filesystem::path& file, char separator = ',');
  /// Goes to the next one; false at the end. What is left there without a line end is one as well. Throws:
  /// Error where reading fails, kInvalidArgument for a record of more than `longest` bytes.
  bool next(std::size_t longest);
  /// Without its line end.
  const std::string& record() const { return record_; }
  bool has_line_end() const { return has_line_end_; }
  std::size_t line() const { return line_; }  ///< where it begins, from 1

 private:
  bool read_more();

  const std::filesystem::path file_;
  const char separator_;
  std::ifstream in_;
  std::string rest_, record_;
  std::size_t at_ = 0;  ///< in `rest_`
  std::size_t line_ = 0, next_line_ = 1;
  bool has_line_end_ = false;
};

}  // namespace abl::protocol
