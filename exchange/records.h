// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exchange/results.h"

namespace abl::exchange {

/// One value of a record, as its file has it.
struct Field {
  std::string name;
  std::string text;        ///< empty: it is not there
  bool is_text = false;    ///< JSON says that it is no number
  std::size_t column = 1;  ///< in bytes from 1
};

/// Makes points of the records of a table. A table is long, a line for each point, where it has columns
/// `metric` and `value`; otherwise wide, a column for each metric.
class Records {
 public:
  /// `file` names it in messages.
  Records(std::string file, const Mapping& mapping, Sink& sink);

  /// All columns, or keys, that the file has, before its first record: which of them means what depends on
  /// no order. Throws: Error where one that was asked for is not among them, with the nearest.
  void expect(const std::vector<std::string>& columns);
  /// Throws: Error{kInvalidArgument} "FILE:LINE:COLUMN: …".
  void add(std::size_t line, const std::vector<Field>& fields);
  /// At the end: what was passed over.
  std::vector<std::string> notes() const;

 private:
  enum class Role {
    kIgnored,
    kSweep,
    kRow,
    kSeed,
    kStep,
    kTime,
    kMetricName,
    kValue,
    kMetric,
    kSetting,
    kUnknown
  };
  struct Column {
    Role role = Role::kIgnored;
    std::size_t told_by = 0;  ///< line of the text that made it a setting, which nobody had said; 0: none
  };
  Role role_of(const std::string& column) const;
  Column& column(const std::string& name);
  void tell(Column& column, std::size_t line, const Field& field) const;
  std::uint32_t count_step(std::size_t line, const RunKey& key, const std::string& metric);
  [[noreturn]] void refuse(std::size_t line, std::size_t column, const std::string& what) const;

  const std::string file_;
  const Mapping mapping_;
  Sink& sink_;
  std::string as_row_;
  std::string step_;  ///< column of steps; empty: there is none, and lines are counted
  std::unordered_map<std::string, Column> columns_;
  bool is_long_ = false;
  std::map<std::pair<RunKey, std::string>, std::uint32_t>
      counted_;  ///< lines of a run without a step, of a metric
  struct Unsettled {
    std::string column, first, other;
    std::size_t line = 0;
  };
  void note_setting(std::size_t line, const RunKey& key, const Field& field);
  std::map<std::pair<RunKey, std::string>, std::string> settings_;  ///< of a run, as it has them first
  std::optional<Unsettled>
      unsettled_;               ///< a setting that one run has several of: perhaps it is of several rows
  std::size_t unfinished_ = 0;  ///< lines of runs that failed, or were under way
  std::size_t without_points_ = 0;
  std::size_t first_without_ = 0;  ///< line
};

}  // namespace abl::exchange
