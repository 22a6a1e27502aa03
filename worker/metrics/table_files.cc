// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/watched_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "base/utf8.h"
#include "protocol/metric_source.h"
#include "protocol/number.h"
#include "worker/metrics/growing_file.h"
#include "worker/metrics/table_rows.h"

namespace abl::metrics {
namespace fs = std::filesystem;
using protocol::MetricSource;
namespace {

constexpr std::size_t kMostShown = 12;  // columns in a message

class Tables final : public WatchedFiles {
 public:
  Tables(MetricSource source, fs::path folder, std::size_t most_files, std::uint32_t counted)
      : source_{std::move(source)}, folder_{std::move(folder)}, most_files_{most_files}, counted_{counted} {}

  bool look(Found& found) override {
    for (const fs::path& path : matching(folder_, source_.path)) {
      // the worker's own record of what it has found is no source of it
      std::error_code failed;
      if (path == folder_ / protocol::kRunMetrics || fs::is_directory(path, failed)) continue;
      const auto is_it = [&](const Table& table) { return table.file.path() == path; };
      if (std::ranges::any_of(tables_, is_it)) continue;
      if (tables_.size() < most_files_)
        tables_.emplace_back(path, folder_, counted_);
      else if (!std::exchange(said_too_many_, true))
        found.note(
            fmt::format("more than {} files match '{}': the others are not read", most_files_, source_.path));
    }
    bool more = false;
    for (std::size_t i = 0; i < tables_.size() && !found.is_full(); ++i, turn_ = (turn_ + 1) % tables_.size())
      more = read(tables_[turn_], found) || more;
    return more || found.is_full();
  }

  void close(Found& found) override {
    for (Table& table : tables_) table.rows.close(taker(table, found));
  }

  std::string lacking() const override {
    if (found_any_) return unknown_name();
    if (tables_.empty()) return fmt::format("no file '{}' in the run's folder", source_.path);
    const Table& table = tables_.front();
    const std::string file = table.file.path().lexically_relative(folder_).string();
    if (!table.file.problem().empty()) return fmt::format("'{}' {}", file, table.file.problem());
    if (!missed_.empty()) return fmt::format("'{}' has no number with a step: {}", file, missed_);
    if (table.file.offset() == 0) return fmt::format("'{}' is empty", file);
    return fmt::format("'{}' has no row with a number", file);
  }

 private:
  struct Table {
    Table(fs::path path, const fs::path& root, std::uint32_t begin)
        : file{std::move(path), root}, counted{begin}, first{begin} {}
    GrowingFile file;
    TableRows rows;
    std::uint32_t counted;  ///< rows with numbers
    std::uint32_t first;    ///< where its count begins
    bool again = false;     ///< it was written anew: its beginning may have been read before
  };

  bool read(Table& table, Found& found) {
    const GrowingFile::Piece piece = table.file.read(kPiece);
    if (piece.anew) {
      table.rows = {};
      table.counted = table.first;
      table.again = true;
    }
    if (!piece.bytes.empty()) table.rows.read(piece.bytes, taker(table, found));
    return !piece.at_end;
  }

  TableRows::Taker taker(Table& table, Found& found) {
    return {.row = [&](const TableRows::Cells& cells) { row(table, cells, found); },
            .refuse =
                [&](std::string_view text, const std::string& problem) {
                  if (missed_.empty()) missed_ = problem;
                  if (!table.again) found.refuse(text.substr(0, kLongestShown), problem);
                }};
  }

  void row(Table& table, const TableRows::Cells& cells, Found& found) {
    const std::string step_column = step_name(source_, table.rows.columns());
    std::string refused, step_text;
    std::vector<std::pair<std::string, double>> values;
    for (const auto& [column, text] : cells) {
      if (column == step_column) {
        step_text = text;
      } else if (const auto value = protocol::logged_number(text); value && !column.empty()) {
        if (text.find(',') == std::string::npos)
          values.emplace_back(column, *value);
        else if (!table.again)  // of thousands, or a decimal comma: who guesses shows a wrong number
          found.refuse(shown(cells), fmt::format("{}: a comma in '{}'; expected a point, and no thousands",
                                                 column, valid_utf8(text.substr(0, kLongestShown))));
      }
    }
    if (values.empty()) return;  // a remark
    std::optional<std::uint32_t> step;
    if (!step_column.empty()) {
      step = protocol::logged_step(step_text);
      if (!step)
        refused = step_text.empty() ? fmt::format("no {}", step_column)
                                    : fmt::format("{}: '{}' is not a whole number", step_column,
                                                  valid_utf8(step_text.substr(0, kLongestShown)));
    } else if (source_.step == protocol::kCountedStep) {
      step = ++table.counted;
    } else {
      refused = no_step(table);
    }
    if (!step) {
      if (missed_.empty()) missed_ = refused;
      if (!table.again) found.refuse(shown(cells), refused);
      return;
    }
    for (const auto& [column, value] : values)
      say(table, protocol::metric_name(source_, column), *step, value, found);
  }

  void say(const Table& table, const std::string& name, std::uint32_t step, double value, Found& found) {
    found_any_ = true;
    const auto highest = highest_.find(name);
    if (highest == highest_.end()) {
      if (highest_.size() >= kMostMetrics) return;
      highest_.emplace(name, step);
    } else if (table.again && step <= highest->second) {
      return;
    } else {
      highest->second = std::max(highest->second, step);
    }
    found.seen(step);
    found.point(name, step, value);
  }

  /// A name that the source gives to a column that no table has.
  std::string unknown_name() const {
    std::vector<std::string> columns;
    for (const Table& table : tables_)
      columns.insert(columns.end(), table.rows.columns().begin(), table.rows.columns().end());
    for (const auto& [column, name] : source_.names)
      if (std::ranges::find(columns, column) == columns.end())
        return fmt::format("no column '{}' in '{}'{}", column, source_.path, did_you_mean(column, columns));
    return {};
  }

  std::string no_step(const Table& table) const {
    const auto& columns = table.rows.columns();
    std::vector<std::string> shown{
        columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(std::min(columns.size(), kMostShown))};
    if (columns.size() > kMostShown) shown.emplace_back("…");
    if (source_.step.empty())
      return fmt::format(
          "none of its columns is named {}; it has {}: say which is the step, or 'step: count'",
          any_of({protocol::kStepNames.begin(), protocol::kStepNames.end()}), fmt::join(shown, ", "));
    return fmt::format("no column '{}'; it has {}{}", source_.step, fmt::join(shown, ", "),
                       did_you_mean(source_.step, columns));
  }

  static std::string shown(const TableRows::Cells& cells) {
    std::string text;
    for (const auto& [column, cell] : cells)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", column, cell);
    return valid_utf8(text.substr(0, kLongestShown));
  }

  const MetricSource source_;
  const fs::path folder_;
  const std::size_t most_files_;
  const std::uint32_t counted_;
  std::size_t turn_ = 0;  ///< of the tables: where the next look begins
  std::vector<Table> tables_;
  std::map<std::string, std::uint32_t> highest_;  ///< metric -> the highest step that was said of it
  std::string missed_;
  bool found_any_ = false, said_too_many_ = false;
};

}  // namespace

std::unique_ptr<WatchedFiles> watch_tables(const MetricSource& source, const fs::path& folder,
                                           std::size_t most_files, std::uint32_t resume_step) {
  return std::make_unique<Tables>(source, folder, most_files, resume_step);
}

}  // namespace abl::metrics
