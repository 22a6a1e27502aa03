// SPDX-License-Identifier: Apache-2.0
#include "views/table_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/result_version.h"

namespace abl::views {
namespace {

constexpr std::size_t kNamed = 20;  ///< rows, or runs: a table may have thousands

std::string rows_text(const std::vector<std::string>& rows) {
  const std::size_t named = std::min(rows.size(), kNamed);
  return fmt::format("{} {}{}", rows.size() == 1 ? "row" : "rows",
                     fmt::join(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                     rows.size() > named ? fmt::format(" and {} more", rows.size() - named) : "");
}

std::string refused_text(const storage::RefusedLines& refused) {
  return fmt::format("row {}, seed {}: {} of run {} could not be read as metrics{}{}", refused.row,
                     refused.seed, refused.lines == 1 ? "1 line" : fmt::format("{} lines", refused.lines),
                     refused.run, refused.example.empty() ? "" : ", such as ", refused.example);
}

}  // namespace

std::vector<std::string> table_notes(const storage::Table& table) {
  std::vector<std::string> notes;
  for (const auto& rows : table.equal_rows)
    notes.push_back(rows_text(rows) +
                    " have identical curves: does what differs between them have an effect?");
  for (const auto& [due, rows] : table.before_mend)
    notes.push_back(fmt::format(
        "{}: results made before a correction: {} ('ablate retry {} --before-mend' trains them again)",
        rows_text(rows), config::what_changed(due), table.sweep));
  for (std::size_t i = 0; i < std::min(table.refused.size(), kNamed); ++i)
    notes.push_back(refused_text(table.refused[i]));
  if (table.refused.size() > kNamed)
    notes.push_back(
        fmt::format("and {} more runs said metrics that could not be read", table.refused.size() - kNamed));
  return notes;
}

}  // namespace abl::views
