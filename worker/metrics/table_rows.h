// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace abl::metrics {

/// Rows of a table that comes in pieces, as cells with the names of their columns: CSV (RFC 4180; with
/// commas, semicolons or tabs, whichever its header has most of) or JSON Lines, as the first character says.
/// Thread: one.
class TableRows {
 public:
  using Cells = std::vector<std::pair<std::string, std::string>>;  ///< column, what stands there
  struct Taker {
    std::function<void(const Cells& cells)> row;
    /// A row, or what should have been one, cannot be understood.
    std::function<void(std::string_view text, const std::string& problem)> refuse;
  };

  /// Rows that have their line end; the rest waits.
  void read(std::string_view bytes, const Taker& taker);
  /// The file is at its end for good: what has no line end is a row all the same.
  void close(const Taker& taker);
  /// Of the header, or all that objects have had. Empty: there was none yet.
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  enum class Form { kUnknown, kCsv, kJson };
  std::optional<std::size_t> record_length(std::string_view text) const;
  void record(std::string_view text, const Taker& taker);
  void csv(std::string_view text, const Taker& taker);
  void json_line(std::string_view text, const Taker& taker);
  std::vector<std::string> cells(std::string_view text) const;

  Form form_ = Form::kUnknown;
  char separator_ = ',';
  bool begun_ = false;  ///< its first bytes were looked at
  bool skips_ = false;  ///< the rest of a record that is too long
  bool has_header_ = false;
  std::string rest_;
  std::vector<std::string> columns_;
};

}  // namespace abl::metrics
