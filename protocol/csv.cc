// SPDX-License-Identifier: Apache-2.0
#include "protocol/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace abl::protocol {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + "\"";
}

std::string csv_number(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

char csv_separator(std::string_view header) {
  return std::ranges::max({',', ';', '\t'}, {}, [&](char c) { return std::ranges::count(header, c); });
}

std::optional<std::size_t> csv_record_length(std::string_view text, char separator) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  if (text.substr(0, end).find('"') == std::string_view::npos) return end + 1;
  bool quoted = false, at_start = true;  // of a field
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      quoted = c != '"';  // of two of them the second opens again
      at_start = !quoted;
    } else if (c == '\n') {
      return at + 1;
    } else if (c == '"' && at_start) {
      quoted = true;
    } else {
      at_start = c == separator;
    }
  }
  return std::nullopt;
}

std::vector<CsvField> csv_fields(std::string_view record, char separator) {
  std::vector<CsvField> fields(1);
  bool in_quotes = false;
  for (std::size_t at = 0; at < record.size(); ++at) {
    CsvField& field = fields.back();
    const char c = record[at];
    if (in_quotes && c == '"' && record.substr(at + 1).starts_with('"')) {
      field.text += record[++at];
    } else if (in_quotes && c == '"') {
      in_quotes = false;
    } else if (in_quotes) {
      field.text += c;
    } else if (c == '"' && field.text.empty() && !field.quoted) {
      in_quotes = field.quoted = true;
    } else if (c == separator) {
      fields.push_back({.column = at + 2});
    } else {
      if (field.quoted && field.behind == 0) field.behind = at + 1;
      field.text += c;
    }
  }
  fields.back().open = in_quotes;
  return fields;
}

CsvFile::CsvFile(const std::filesystem::path& file, char separator)
    : file_{file}, separator_{separator}, in_{file, std::ios::binary} {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!in_) throw system_error("cannot read " + file.string(), errno);
  read_more();
  if (rest_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

/// Returns: whether anything came.
bool CsvFile::read_more() {
  constexpr std::size_t kPiece = 64 << 10;
  rest_.erase(0, std::exchange(at_, 0));
  const std::size_t had = rest_.size();
  rest_.resize(had + kPiece);
  in_.read(rest_.data() + had, kPiece);
  rest_.resize(had + static_cast<std::size_t>(in_.gcount()));
  if (in_.bad()) throw system_error("cannot read " + file_.string(), EIO);
  return rest_.size() > had;
}

bool CsvFile::next(std::size_t longest) {
  line_ = next_line_;
  std::optional<std::size_t> length;
  while (!(length = csv_record_length(std::string_view{rest_}.substr(at_), separator_))) {
    if (rest_.size() - at_ > longest) break;
    if (!read_more()) break;
  }
  has_line_end_ = length.has_value();
  record_ = rest_.substr(at_, length.value_or(std::string::npos));
  if (record_.empty()) return false;
  if (record_.size() > longest)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}:{}:1: a line of more than {} MiB", file_.string(), line_, longest >> 20)};
  at_ += record_.size();
  next_line_ += static_cast<std::size_t>(std::ranges::count(record_, '\n'));
  if (has_line_end_) record_.pop_back();
  if (record_.ends_with('\r')) record_.pop_back();
  return true;
}

}  // namespace abl::protocol
