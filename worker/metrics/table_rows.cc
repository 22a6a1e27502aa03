// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/table_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "protocol/csv.h"
#include "protocol/number.h"

namespace abl::metrics {
using nlohmann::json;
namespace {

constexpr std::size_t kLongestRecord = 1 << 20;
constexpr std::size_t kMostColumns = 2000;  // as a run has metrics
constexpr int kDeepest = 8;                 // objects in each other
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return std::string{text.substr(begin, text.find_last_not_of(" \t") + 1 - begin)};
}

/// {"val": {"acc": 1}} has the column val/acc.
void add_cells(const json& object, const std::string& path, TableRows::Cells& cells) {
  for (const auto& [key, value] : object.items()) {
    std::string name = path.empty() ? key : fmt::format("{}/{}", path, key);
    if (value.is_object())
      add_cells(value, name, cells);
    else if (value.is_string())
      cells.emplace_back(std::move(name), value.get<std::string>());
    else if (value.is_number())
      cells.emplace_back(std::move(name), value.dump());
  }
}

}  // namespace

/// Length of the record that the text begins with, its line end included; nothing where that has not come.
std::optional<std::size_t> TableRows::record_length(std::string_view text) const {
  if (form_ != Form::kJson) return protocol::csv_record_length(text, separator_);
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? std::nullopt : std::optional{end + 1};
}

void TableRows::read(std::string_view bytes, const Taker& taker) {
  rest_ += bytes;
  if (!begun_) {
    if (rest_.size() < kByteOrderMark.size() && kByteOrderMark.starts_with(rest_)) return;
    if (rest_.starts_with(kByteOrderMark)) rest_.erase(0, kByteOrderMark.size());
    begun_ = true;
  }
  std::string_view text = rest_;
  while (!text.empty()) {
    if (form_ == Form::kUnknown) {
      const auto first = text.find_first_not_of(" \t\r\n");
      if (first == std::string_view::npos) break;
      form_ = text[first] == '{' ? Form::kJson : Form::kCsv;
      text.remove_prefix(first);
    }
    // the end of one that is too long is its line's: a quote may have opened what nothing closes
    auto length = skips_ ? std::nullopt : record_length(text);
    const bool too_long = length.value_or(text.size()) > kLongestRecord;
    if (too_long) taker.refuse(text, "a row has at most 1 MiB");
    if (skips_ || too_long) {
      const auto line_end = text.find('\n');
      skips_ = line_end == std::string_view::npos;
      text.remove_prefix(skips_ ? text.size() : line_end + 1);
      continue;
    }
    if (!length) break;
    record(text.substr(0, *length), taker);
    text.remove_prefix(*length);
  }
  rest_.erase(0, rest_.size() - text.size());
}

void TableRows::close(const Taker& taker) {
  if (!rest_.empty()) read("\n", taker);
  if (rest_.empty() || is_blank(rest_)) return;
  taker.refuse(rest_, "a quote is not closed");
  rest_.clear();
}

void TableRows::record(std::string_view text, const Taker& taker) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (is_blank(text)) return;
  if (form_ == Form::kJson) return json_line(text, taker);
  csv(text, taker);
}

/// Of a record without its line end.
std::vector<std::string> TableRows::cells(std::string_view text) const {
  std::vector<std::string> cells;
  for (auto& field : protocol::csv_fields(text, separator_))
    cells.push_back(field.quoted ? std::move(field.text) : trimmed(field.text));
  return cells;
}

void TableRows::csv(std::string_view text, const Taker& taker) {
  if (text.starts_with('#')) {  // a comment, or the header of a table for gnuplot and NumPy
    if (has_header_) return;
    text.remove_prefix(std::min(text.find_first_not_of("# \t"), text.size()));
    if (text.find_first_of(",;\t") == std::string_view::npos) return;
  }
  if (!has_header_) separator_ = protocol::csv_separator(text);
  std::vector<std::string> found = cells(text);
  const bool names = std::ranges::none_of(
      found, [](const std::string& cell) { return protocol::logged_number(cell).has_value(); });
  if (!has_header_) {
    if (!names) return taker.refuse(text, "expected a header with the names of the columns");
    if (found.size() > kMostColumns)
      return taker.refuse(text, fmt::format("{} columns; expected at most {}", found.size(), kMostColumns));
    for (std::string& name : found) name = valid_utf8(name);
    columns_ = std::move(found);
    has_header_ = true;
    return;
  }
  if (names && std::ranges::find(found, columns_[0]) != found.end()) {  // said again, perhaps with others
    if (found.size() > kMostColumns) return;
    for (std::string& name : found) name = valid_utf8(name);
    columns_ = std::move(found);
    return;
  }
  if (found.size() > columns_.size())
    return taker.refuse(text, fmt::format("{} cells below {} columns", found.size(), columns_.size()));
  Cells row;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].empty()) row.emplace_back(columns_[i], std::move(found[i]));
  taker.row(row);
}

void TableRows::json_line(std::string_view text, const Taker& taker) {
  Cells row;
  try {
    const auto shallow = [](int depth, json::parse_event_t, json&) { return depth < kDeepest; };
    const json parsed = json::parse(protocol::with_quoted_non_finite(text), shallow);
    if (!parsed.is_object()) return taker.refuse(text, "expected a JSON object on each line");
    add_cells(parsed, "", row);
  } catch (const json::parse_error&) {
    return taker.refuse(text, "not valid JSON");
  } catch (const json::out_of_range&) {
    return taker.refuse(text, "a number is beyond what 64 bits hold");
  }
  for (const auto& [name, cell] : row)
    if (columns_.size() < kMostColumns && std::ranges::find(columns_, name) == columns_.end())
      columns_.push_back(name);
  taker.row(row);
}

}  // namespace abl::metrics
