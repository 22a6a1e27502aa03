// SPDX-License-Identifier: Apache-2.0
#include "views/table_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "config/document/result_version.h"

namespace abl::views {
namespace {

constexpr std::size_t kNamed = 20;  ///< rows, or runs: a table may have thousands

std::string rows_text(const std::vector<std::string>& rows) {
  const std::size_t named = std::min(rows.size(), kNamed);
  return fmt::format("{} {}{}", rows.size() == 1 ? "row" : "rows",
                     fmt::join(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                     rows.size() > named ? fmt::format(" and {} more", rows.size() - named) : "");
}

/// Runs of a table that lost metrics for one reason.
struct Loss {
  std::uint64_t count = 0;
  std::vector<std::string> rows;    // in the table's order
  std::vector<std::int64_t> seeds;  // ascending
  storage::RunId run = 0;           // the first
  std::size_t runs = 0;
  std::string example;

  void add(const storage::LostMetrics& lost, std::uint32_t more) {
    count += more;
    if (rows.empty() || rows.back() != lost.row) rows.push_back(lost.row);
    if (const auto place = std::ranges::lower_bound(seeds, lost.seed);
        place == seeds.end() || *place != lost.seed)
      seeds.insert(place, lost.seed);
    if (runs++ == 0) run = lost.run, example = lost.example;
  }
  /// "row a, seed 0: 3 lines of run 7", "rows a, b, seeds 0, 1: 12 lines of 4 runs"
  std::string text(std::string_view one, std::string_view many) const {
    const std::size_t named = std::min(seeds.size(), kNamed);
    return fmt::format("{}, {} {}{}: {} {} of {}", rows_text(rows), seeds.size() == 1 ? "seed" : "seeds",
                       fmt::join(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                       seeds.size() > named ? fmt::format(" and {} more", seeds.size() - named) : "", count,
                       count == 1 ? one : many,
                       runs == 1 ? fmt::format("run {}", run) : fmt::format("{} runs", runs));
  }
};

/// What is wrong with a refused line: the last brackets of its example.
std::string reason_of(const std::string& example) {
  const auto bracket = example.rfind(" (");
  return example.ends_with(')') && bracket != std::string::npos ? example.substr(bracket) : example;
}

/// "4 more rows", of those beyond the named ones.
std::string more(std::size_t all, const char* one, const char* several) {
  return fmt::format("{} more {}", all - kNamed, all - kNamed == 1 ? one : several);
}

void add_losses(const std::vector<storage::LostMetrics>& all, std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, Loss>> refused;    // by reason
  std::unordered_map<std::string, std::size_t> places;  // of reasons among these
  Loss repeated;
  for (const auto& lost : all) {
    if (lost.points > 0) repeated.add(lost, lost.points);
    if (lost.lines == 0) continue;
    const std::string reason = reason_of(lost.example);
    const auto [place, fresh] = places.try_emplace(reason, refused.size());
    if (fresh) refused.emplace_back(reason, Loss{});
    refused[place->second].second.add(lost, lost.lines);
  }
  for (std::size_t i = 0; i < std::min(refused.size(), kNamed); ++i) {
    const Loss& loss = refused[i].second;
    notes.push_back(fmt::format("{} refused{}{}", loss.text("metric report", "metric reports"),
                                loss.example.empty() ? "" : ", such as ", loss.example));
  }
  if (refused.size() > kNamed)
    notes.push_back(
        fmt::format("and metric reports refused for {}", more(refused.size(), "reason", "reasons")));
  if (repeated.count > 0)
    notes.push_back(repeated.text("point", "points") +
                    (repeated.count == 1
                         ? " repeats an earlier step with a different value; the first value was kept"
                         : " repeat earlier steps with different values; the first values were kept"));
}

/// Values marked ‡: what runs took that had a part of their GPU is not what they would take alone.
void add_packed(const std::vector<storage::Packed>& packed, std::vector<std::string>& notes) {
  std::map<std::string, std::pair<std::vector<std::string>, std::uint32_t>>
      metrics;  // -> rows, others at most
  for (const auto& cell : packed) {
    auto& [rows, others] = metrics[cell.metric];
    rows.push_back(cell.row);
    others = std::max(others, cell.others);
  }
  for (const auto& [metric, found] : metrics)
    notes.push_back(fmt::format("‡ {}: {} of runs that shared their GPU with up to {} other{}",
                                rows_text(found.first), metric, found.second, found.second == 1 ? "" : "s"));
}

std::string diverged_text(const storage::Diverged& diverged) {
  if (!diverged.reason.empty())
    return fmt::format("row {}, seed {} diverged and failed: {}; cells with such a seed have no mean",
                       diverged.row, diverged.seed, diverged.reason);
  if (diverged.at_end)
    return fmt::format(
        "row {}, seed {} diverged: {} is not finite at its end; cells with such a seed have no mean",
        diverged.row, diverged.seed, diverged.metric);
  return fmt::format("row {}, seed {}: {} of {} {} not finite; {} is of the others", diverged.row,
                     diverged.seed,
                     diverged.points == 1 ? "1 point" : fmt::format("{} points", diverged.points),
                     diverged.metric, diverged.points == 1 ? "is" : "are", name_of(diverged.take));
}

}  // namespace

namespace {

/// Values that other tools have measured.
void add_imported(const storage::Table& table, std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::string>> rows;  // origin -> ids
  for (const storage::TableRow& row : table.rows)
    if (!row.imported.empty()) rows[row.imported].push_back(row.id);
  for (const auto& [origin, ids] : rows)
    notes.push_back(fmt::format("¶ {}: imported from {}, not measured here", rows_text(ids), origin));
}

/// Values of an older version of the sweep's command.
void add_older(const storage::Table& table, std::vector<std::string>& notes) {
  std::map<std::string, std::vector<std::string>> rows;  // version -> ids
  for (const storage::TableRow& row : table.rows)
    for (const storage::Cell& cell : row.cells)
      if (cell.older > 0) {
        rows[cell.older_version].push_back(row.id);
        break;
      }
  for (const auto& [version, ids] : rows)
    notes.push_back(fmt::format("§ {}: values of {} of the command, until the new trials have completed",
                                rows_text(ids),
                                version.empty() ? "its first version" : "version " + version));
}

/// What the table shows of rows without trials, and which printed values are in doubt.
void add_not_trained(const storage::Table& table, std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // -> rows
  const auto add = [&](std::string why, const std::string& row) {
    auto known = std::ranges::find(reasons, why, [](const auto& reason) { return reason.first; });
    if (known == reasons.end()) known = reasons.insert(known, {std::move(why), {}});
    known->second.push_back(row);
  };
  for (const storage::TableRow& row : table.rows)
    if (row.not_trained) add(": not trained here: " + row.not_trained_why, row.id);
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    for (const storage::TableRow& row : table.rows)
      if (const auto& mark = row.cells[i].mark; mark && mark->mark == protocol::Mark::kDoubtful)
        add(fmt::format(": the paper's {} is in doubt{}{}", table.columns[i].name,
                        mark->why.empty() ? "" : ": ", mark->why),
            row.id);
  for (const auto& [why, rows] : reasons) notes.push_back(rows_text(rows) + why);
}

}  // namespace

std::vector<std::string> table_notes(const storage::Table& table) {
  std::vector<std::string> notes;
  add_not_trained(table, notes);
  for (const std::string& held : table.holds)
    notes.push_back(
        fmt::format("{}; the others are held ('ablate retry {} --held' runs them)", held, table.sweep));
  for (std::size_t i = 0; i < std::min(table.equal_rows.size(), kNamed); ++i)
    notes.push_back(rows_text(table.equal_rows[i]) +
                    " have identical curves: does what differs between them have an effect?");
  if (table.equal_rows.size() > kNamed)
    notes.push_back(fmt::format("and {} identical curves",
                                more(table.equal_rows.size(), "group of rows has", "groups of rows have")));
  std::vector<std::string> diverged;  // of several columns of one metric once
  for (const storage::Diverged& one : table.diverged)
    if (std::string text = diverged_text(one);
        std::ranges::find(diverged, text) == diverged.end() && diverged.size() <= kNamed)
      diverged.push_back(std::move(text));
  if (diverged.size() > kNamed) diverged.back() = "and there are more values of runs that diverged";
  notes.insert(notes.end(), diverged.begin(), diverged.end());
  for (const auto& [due, rows] : table.before_mend)
    notes.push_back(fmt::format(
        "{}: results made before a correction: {} ('ablate retry {} --before-mend' trains them again)",
        rows_text(rows), config::what_changed(due), table.sweep));
  if (!table.seeds_added.empty())
    notes.push_back(fmt::format(
        "seeds were added in {} {}: p-values and intervals hold where that did not depend on the results",
        table.seeds_added.size() == 1 ? "revision" : "revisions", fmt::join(table.seeds_added, ", ")));
  add_imported(table, notes);
  add_older(table, notes);
  add_packed(table.packed, notes);
  add_losses(table.lost, notes);
  return notes;
}

storage::Table noted(const storage::Table& table) {
  storage::Table kept{.sweep = table.sweep, .baseline = table.baseline};
  kept.columns = table.columns;
  kept.diverged = table.diverged;
  kept.equal_rows = table.equal_rows;
  kept.before_mend = table.before_mend;
  kept.lost = table.lost;
  kept.packed = table.packed;
  kept.holds = table.holds;
  kept.seeds_added = table.seeds_added;
  for (const storage::TableRow& row : table.rows) {
    const auto says = [](const storage::Cell& cell) { return cell.mark || cell.older > 0; };
    if (!row.not_trained && row.imported.empty() && std::ranges::none_of(row.cells, says)) continue;
    storage::TableRow& line = kept.rows.emplace_back();
    line.id = row.id;
    line.not_trained = row.not_trained;
    line.not_trained_why = row.not_trained_why;
    line.imported = row.imported;
    for (const storage::Cell& cell : row.cells) {
      storage::Cell& of = line.cells.emplace_back();
      of.mark = cell.mark;
      of.older = cell.older;
      of.older_version = cell.older_version;
    }
  }
  return kept;
}

std::vector<std::string> table_notes_of(const storage::Table& noted, const std::string& row) {
  const auto keep = [&](const auto& all, auto& kept, const auto& is) {
    std::ranges::copy_if(all, std::back_inserter(kept), is);
  };
  const auto of_row = [&](const auto& each) { return each.row == row; };
  storage::Table alone{.sweep = noted.sweep, .baseline = noted.baseline};
  alone.columns = noted.columns;
  keep(noted.rows, alone.rows, [&](const auto& each) { return each.id == row; });
  keep(noted.diverged, alone.diverged, of_row);
  keep(noted.lost, alone.lost, of_row);
  keep(noted.packed, alone.packed, of_row);
  keep(noted.equal_rows, alone.equal_rows,
       [&](const auto& rows) { return std::ranges::find(rows, row) != rows.end(); });
  for (const auto& [due, rows] : noted.before_mend)
    if (std::ranges::find(rows, row) != rows.end()) alone.before_mend[due] = {row};
  alone.holds = noted.holds;
  alone.seeds_added = noted.seeds_added;
  return table_notes(alone);
}

}  // namespace abl::views
