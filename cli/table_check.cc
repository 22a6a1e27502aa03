// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/source.h"
#include "cli/table_renderer.h"
#include "cli/table_sheet.h"

namespace abl::cli {
namespace {

constexpr std::string_view kOpen = "<!--", kClose = "-->";
constexpr std::size_t kMostShown = 200;  // differences

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string without_margins(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string{text.substr(first, text.find_last_not_of(" \t\r") - first + 1)};
}

[[noreturn]] void bad_marker(const std::string& file, std::size_t line, const std::string& message) {
  throw Error{Code::kInvalidArgument, fmt::format("{}:{}: {}", file, line, message)};
}

/// The words of a command, of which some may be in double quotes.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      if (!std::exchange(open, true)) words.emplace_back();
    } else if (!quoted && (c == ' ' || c == '\t')) {
      open = false;
    } else {
      if (!std::exchange(open, true)) words.emplace_back();
      words.back() += c;
    }
  }
  return words;
}

/// What is in a comment that is a line of its own: "ablate table …".
std::optional<std::string> marker_in(const std::string& line) {
  const std::string text = without_margins(line);
  if (!text.starts_with(kOpen) || !text.ends_with(kClose) || text.size() < kOpen.size() + kClose.size())
    return std::nullopt;
  const std::string inside =
      without_margins(text.substr(kOpen.size(), text.size() - kOpen.size() - kClose.size()));
  const auto words = words_of(inside);
  return words.size() >= 2 && words[0] == "ablate" && words[1] == "table" ? std::optional{inside}
                                                                          : std::nullopt;
}

MarkedTable read_marker(const std::string& command, const std::string& file, std::size_t line) {
  MarkedTable table{.file = file, .line = line};
  std::vector<std::string> words = words_of(command);
  const std::vector<std::string> kFlags{"--format", "--columns", "--long", "--store", "--caption", "--label"};
  for (std::size_t i = 2; i < words.size(); ++i) {
    std::string word = words[i], value;
    if (!word.starts_with("--")) {
      if (!table.sweep.empty())
        bad_marker(file, line, fmt::format("the marker names two sweeps, '{}' and '{}'", table.sweep, word));
      table.sweep = word;
      continue;
    }
    const auto equals = word.find('=');
    if (equals != std::string::npos) value = word.substr(equals + 1), word.resize(equals);
    if (std::ranges::find(kFlags, word) == kFlags.end())
      bad_marker(file, line,
                 fmt::format("unknown flag '{}' in the marker; expected {}{}", word, any_of(kFlags),
                             did_you_mean(word, kFlags)));
    if (word == "--long") {
      table.long_form = true;
      continue;
    }
    if (equals == std::string::npos) {
      if (i + 1 >= words.size()) bad_marker(file, line, fmt::format("'{}' in the marker has no value", word));
      value = words[++i];
    }
    try {
      if (word == "--format") table.format = table_format(value);
      if (word == "--columns") table.options.shown = shown_named(value);
    } catch (const Error& error) {
      bad_marker(file, line, error.what());
    }
    if (word == "--store") table.store = value;
    if (word == "--caption") table.options.caption = value;
    if (word == "--label") table.options.label = value;
  }
  if (table.sweep.empty()) bad_marker(file, line, "the marker names no sweep; expected 'ablate table SWEEP'");
  if (table.format == TableFormat::kJson)
    bad_marker(file, line, "a table as JSON is not compared; expected another format");
  return table;
}

bool is_fence(const std::string& line) { return without_margins(line).starts_with("```"); }

/// Where the table of a marker is, in lines from 0; nothing where there is none.
std::optional<std::pair<std::size_t, std::size_t>> region(const std::vector<std::string>& lines,
                                                          std::size_t after, TableFormat format) {
  std::size_t begin = after;
  while (begin < lines.size() && without_margins(lines[begin]).empty()) ++begin;
  if (begin >= lines.size()) return std::nullopt;
  if (format == TableFormat::kMarkdown) {
    std::size_t end = begin;
    while (end < lines.size() && without_margins(lines[end]).starts_with('|')) ++end;
    return end > begin ? std::optional{std::pair{begin, end}} : std::nullopt;
  }
  if (!is_fence(lines[begin])) return std::nullopt;
  std::size_t end = ++begin;
  while (end < lines.size() && !is_fence(lines[end])) ++end;
  return end < lines.size() ? std::optional{std::pair{begin, end}} : std::nullopt;
}

/// The cells of a line of a Markdown table.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  const std::string text = without_margins(line);
  for (std::size_t i = 1; i < text.size(); ++i) {  // behind the first '|'
    if (text[i] == '|' && text[i - 1] != '\\')
      cells.push_back(without_margins(std::exchange(cell, {})));
    else
      cell += text[i];
  }
  return cells;
}

/// A line and where it stands.
struct TableLine {
  std::vector<std::string> cells;
  std::size_t line = 0;
};

/// What tells a row from the others: its names, without what is said of the baseline, and how many rows
/// before it have them too.
std::map<std::pair<std::string, std::size_t>, TableLine> rows_of(const std::vector<std::string>& lines,
                                                                 std::size_t first, std::size_t names) {
  std::map<std::pair<std::string, std::size_t>, TableLine> rows;
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 2; i < lines.size(); ++i) {  // behind headings and rule
    TableLine line{cells_of(lines[i]), first + i};
    std::string key;
    for (std::size_t cell = 0; cell < std::min(names, line.cells.size()); ++cell) {
      std::string name = line.cells[cell];
      if (constexpr std::string_view kBaseline = "(baseline)"; name.ends_with(kBaseline))
        name = without_margins(name.substr(0, name.size() - kBaseline.size()));
      key += (cell ? ", " : "") + name;
    }
    rows.emplace(std::pair{key, seen[key]++}, std::move(line));
  }
  return rows;
}

std::vector<TableDifference> markdown_differences(const MarkedTable& table,
                                                  const std::vector<std::string>& here,
                                                  const std::vector<std::string>& there, std::size_t names) {
  std::vector<TableDifference> found;
  const std::size_t first = table.begin + 1;
  const auto ours = cells_of(here.front()), theirs = cells_of(there.front());
  const auto by_name = [](const std::string& row) {
    const auto end = row.find_last_not_of(", ");
    return end == std::string::npos ? std::string{} : row.substr(0, end + 1);
  };
  if (ours != theirs) {
    for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
      const std::string a = i < ours.size() ? ours[i] : "", b = i < theirs.size() ? theirs[i] : "";
      if (a != b) found.push_back({table.file, first, "", fmt::format("{}", i + 1), a, b});
    }
    return found;  // what stands below is of other columns
  }
  const auto mine = rows_of(here, first, names), stored = rows_of(there, first, names);
  for (const auto& [key, line] : mine) {
    const auto same = stored.find(key);
    if (same == stored.end()) {
      found.push_back({table.file, line.line, by_name(key.first), "", "this row", "no such row"});
      continue;
    }
    for (std::size_t i = 0; i < std::max(line.cells.size(), same->second.cells.size()); ++i) {
      const std::string a = i < line.cells.size() ? line.cells[i] : "",
                        b = i < same->second.cells.size() ? same->second.cells[i] : "";
      if (a != b)
        found.push_back({table.file, line.line, by_name(key.first), i < ours.size() ? ours[i] : "", a, b});
    }
  }
  for (const auto& [key, line] : stored)
    if (!mine.contains(key))
      found.push_back({table.file, table.begin + 1, by_name(key.first), "", "no such row", "a row"});
  std::ranges::stable_sort(found, {}, &TableDifference::line);
  if (found.empty())  // the same rows in another order
    for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
      if (i != 1 && cells_of(here[i]) != cells_of(there[i])) {
        found.push_back({table.file, first + i, "", "", without_margins(here[i]), without_margins(there[i])});
        break;
      }
  return found;
}

}  // namespace

std::vector<MarkedTable> marked_tables(const std::vector<std::string>& lines, const std::string& file) {
  std::vector<MarkedTable> tables;
  bool fenced = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_fence(lines[i])) fenced = !fenced;
    if (fenced) continue;
    const auto command = marker_in(lines[i]);
    if (!command) continue;
    MarkedTable table = read_marker(*command, file, i + 1);
    const auto place = region(lines, i + 1, table.format);
    if (!place)
      bad_marker(file, i + 1,
                 table.format == TableFormat::kMarkdown
                     ? "no table follows the marker; expected lines that begin with '|'"
                     : "no table follows the marker; expected a block between lines of ```");
    table.begin = place->first, table.end = place->second;
    tables.push_back(std::move(table));
    i = tables.back().end - 1;  // a fence's end is seen again, and is one: it was begun in the region
    fenced = tables.back().format != TableFormat::kMarkdown;
  }
  return tables;
}

std::string TableDifference::text() const {
  std::string where = fmt::format("{}:{}: ", file, line);
  if (!row.empty()) where += fmt::format("row {}", row);
  if (!column.empty()) where += fmt::format("{}column {}", row.empty() ? "" : ", ", column);
  if (!row.empty() || !column.empty()) where += ": ";
  return where + fmt::format("the file says '{}', the store says '{}'", says, should);
}

std::vector<TableDifference> differences(const MarkedTable& table, const std::vector<std::string>& here,
                                         const std::vector<std::string>& there, std::size_t names) {
  if (table.format == TableFormat::kMarkdown) return markdown_differences(table, here, there, names);
  std::vector<TableDifference> found;
  for (std::size_t i = 0; i < std::max(here.size(), there.size()); ++i) {
    const std::string a = i < here.size() ? without_margins(here[i]) : "",
                      b = i < there.size() ? without_margins(there[i]) : "";
    if (a != b) found.push_back({table.file, table.begin + std::min(i, here.size()) + 1, "", "", a, b});
  }
  return found;
}

int check_tables(const Context& context, const std::filesystem::path& file, bool write) {
  const std::string text = read_file(file), name = file.string();
  std::vector<std::string> lines = lines_of(text);
  const std::vector<MarkedTable> tables = marked_tables(lines, name);
  if (tables.empty())
    throw Error{Code::kInvalidArgument, fmt::format("{}: no table with a marker; expected a line such as "
                                                    "'<!-- ablate table NAME --format markdown -->' "
                                                    "before each",
                                                    name)};
  const bool ends_lines_as_windows = !lines.empty() && lines.front().ends_with('\r');
  std::map<std::string, std::pair<Context, std::unique_ptr<Source>>>
      sources;  // by store; a source keeps its context
  std::vector<TableDifference> found;
  std::vector<std::vector<std::string>> fresh;
  for (const MarkedTable& table : tables) {
    std::filesystem::path store{context.store_flag};
    if (store.empty() && !table.store.empty()) {
      store = table.store;
      if (store.is_relative()) store = file.parent_path() / store;
    }
    try {
      auto& [own, source] = sources.try_emplace(store.string(), context, nullptr).first->second;
      own.store_flag = store.string();
      if (!source) source = open_source(own);
      const auto message = source->table(table.sweep, 0, false, table.long_form);
      std::vector<std::string> there = lines_of(render_table(message, table.format, nullptr, table.options));
      if (table.format == TableFormat::kMarkdown)  // the notes below it are the document's to say
        there.erase(
            std::ranges::find_if(there, [](const std::string& line) { return !line.starts_with('|'); }),
            there.end());
      const std::vector<std::string> here(lines.begin() + static_cast<std::ptrdiff_t>(table.begin),
                                          lines.begin() + static_cast<std::ptrdiff_t>(table.end));
      for (auto& difference : differences(table, here, there, sheet_of(message, table.options.shown).names))
        found.push_back(std::move(difference));
      fresh.push_back(std::move(there));
    } catch (const Error& error) {
      throw Error{error.code(), fmt::format("{}:{}: {}", name, table.line, error.what())};
    }
  }
  if (write && !found.empty()) {
    for (std::size_t i = tables.size(); i-- > 0;) {
      if (ends_lines_as_windows)
        for (std::string& line : fresh[i]) line += '\r';
      const auto at = lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(tables[i].begin),
                                  lines.begin() + static_cast<std::ptrdiff_t>(tables[i].end));
      lines.insert(at, fresh[i].begin(), fresh[i].end());
    }
    std::string written;
    for (std::size_t i = 0; i < lines.size(); ++i)
      written += lines[i] + (i + 1 < lines.size() || text.ends_with('\n') ? "\n" : "");
    write_file_atomically(file, written);
  }
  if (context.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const TableDifference& difference : found)
      list.push_back({{"file", difference.file},
                      {"line", difference.line},
                      {"row", difference.row},
                      {"column", difference.column},
                      {"file_says", difference.says},
                      {"store_says", difference.should}});
    context.out.line(
        nlohmann::json{{"tables", tables.size()}, {"differences", list}, {"written", write && !found.empty()}}
            .dump());
  } else {
    for (std::size_t i = 0; i < std::min(found.size(), kMostShown); ++i) context.out.line(found[i].text());
    if (found.size() > kMostShown) context.out.line(fmt::format("and {} more", found.size() - kMostShown));
    const std::string checked = fmt::format("{}: {} checked", name, plural(tables.size(), "table"));
    context.out.line(found.empty() ? checked + ", all as the store has them"
                     : write ? fmt::format("{}, {} written anew", checked, plural(found.size(), "difference"))
                             : fmt::format("{}, {}; --write puts in what the store says", checked,
                                           plural(found.size(), "difference")));
  }
  return found.empty() || write ? kExitOk : kExitFailed;
}

}  // namespace abl::cli
