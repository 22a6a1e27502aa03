// SPDX-License-Identifier: Apache-2.0
#include "protocol/csv.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "exchange/readers.h"
#include "exchange/records.h"

namespace abl::exchange {
namespace {

using protocol::CsvField;

constexpr std::size_t kLongestRecord = 16 << 20;

char separator_of(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::string head(64 << 10, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  return protocol::csv_separator(std::string_view{head}.substr(0, head.find('\n')));
}

/// A table's file, in which nothing is guessed at.
class StrictCsv {
 public:
  explicit StrictCsv(const std::filesystem::path& file)
      : name_{file.string()}, separator_{separator_of(file)}, file_{file, separator_} {}

  /// False at the end. Empty lines are passed over.
  bool next(std::vector<CsvField>& fields) {
    do {
      if (!file_.next(kLongestRecord)) return false;
    } while (file_.record().empty());
    if (const auto zero = file_.record().find('\0'); zero != std::string::npos)
      refuse(zero + 1, "a byte 0; expected text");
    fields = protocol::csv_fields(file_.record(), separator_);
    for (const CsvField& field : fields) {
      if (field.open) refuse(field.column, "a quote that is never closed");
      if (field.behind > 0) refuse(field.behind, "text behind a closing quote");
      if (valid_utf8(field.text) != field.text) refuse(field.column, "not UTF-8");
    }
    return true;
  }
  /// Of the record that was read last.
  std::size_t line() const { return file_.line(); }
  [[noreturn]] void refuse(std::size_t column, const std::string& what) const {
    throw Error{Code::kInvalidArgument,
                fmt::format("{}:{}:{}: {}", name_, std::max<std::size_t>(1, line()), column, what)};
  }

 private:
  const std::string name_;
  const char separator_;
  protocol::CsvFile file_;
};

}  // namespace

std::vector<std::string> read_csv(const std::filesystem::path& file, const Mapping& mapping, Sink& sink) {
  StrictCsv csv{file};
  std::vector<CsvField> values;
  if (!csv.next(values)) csv.refuse(1, "an empty file; expected a line of column names");
  std::vector<std::string> columns;
  std::set<std::string> known;
  for (const CsvField& value : values) {
    if (!value.text.empty() && !known.insert(value.text).second)
      csv.refuse(value.column, fmt::format("column '{}' is there twice", value.text));
    columns.push_back(value.text);
  }
  Records records{file.string(), mapping, sink};
  records.expect(columns);
  std::vector<Field> fields(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) fields[i].name = columns[i];
  while (csv.next(values)) {
    if (values.size() != columns.size())
      csv.refuse(values.back().column,
                 fmt::format("{} fields; expected {}, as the first line has", values.size(), columns.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      fields[i].text = std::move(values[i].text);
      fields[i].column = values[i].column;
    }
    records.add(csv.line(), fields);
  }
  return records.notes();
}

}  // namespace abl::exchange
