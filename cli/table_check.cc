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
#include "cli/tables.h"
#include "printing/sheet.h"
#include "views/picked_pivot.h"

namespace abl::cli {
namespace {

using printing::TableFormat;

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
  const std::vector<std::string> kFlags{"--format", "--columns", "--long",    "--pivot", "--stats",
                                        "--tuning", "--store",   "--caption", "--label"};
  for (std::size_t i = 2; i < words.size(); ++i) {
    std::string word = words[i], value;
    if (!word.starts_with("--")) {
      if (!table.sweep.empty())
        bad_marker(file, line,
                   fmt::format("this marker has two sweeps, '{}' and '{}'; expected a marker for each table",
                               table.sweep, word));
      table.sweep = word;
      continue;
    }
    const auto equals = word.find('=');
    if (equals != std::string::npos) value = word.substr(equals + 1), word.resize(equals);
    if (std::ranges::find(kFlags, word) == kFlags.end())
      bad_marker(file, line,
                 fmt::format("unknown flag '{}' in the marker; expected {}{}", word, any_of(kFlags),
                             did_you_mean(word, kFlags)));
    if (word == "--long" || word == "--stats" || word == "--tuning") {
      (word == "--long" ? table.long_form : word == "--stats" ? table.stats : table.tuning) = true;
      continue;
    }
    if (equals == std::string::npos) {
      if (i + 1 >= words.size()) bad_marker(file, line, fmt::format("'{}' in the marker has no value", word));
      value = words[++i];
    }
    try {
      if (word == "--format") table.format = printing::table_format(value);
      if (word == "--columns") table.options.shown = printing::shown_named(value);
      if (word == "--pivot" && value == kNoPivot)
        table.long_form = true;
      else if (word == "--pivot")
        table.pivot = views::factors_named(value);
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
  if (table.stats && table.format != TableFormat::kText)
    bad_marker(file, line, "--stats in a marker is of tables as text; expected no --format");
  if (table.tuning &&
      (table.stats || table.long_form || !table.pivot.empty() || !table.options.shown.empty()))
    bad_marker(file, line,
               "--tuning shows points and not rows: expected no --stats, --columns, --long or --pivot");
  if (!table.pivot.empty() && (table.stats || table.long_form))
    bad_marker(file, line, "--pivot has no long form: expected no --long or --stats beside it");
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

/// A part of a line, and where it begins, from 0.
struct CellText {
  std::string text;
  std::size_t at = 0;
};

CellText without_margins_at(const std::string& line, std::size_t begin, std::size_t end) {
  const auto first = std::min(line.find_first_not_of(" \t\r", begin), end);
  return {without_margins(std::string_view{line}.substr(begin, end - begin)), first};
}

/// How far a line's cell goes that begins at `at`: it ends before what parts it from the next one, which is
/// as long as `part` says then.
std::size_t end_of_cell(const std::string& line, std::size_t at, TableFormat format, std::size_t& part) {
  bool quoted = false;
  int braces = 0;
  for (std::size_t i = at; i < line.size(); ++i) {
    const bool escaped = i > 0 && line[i - 1] == '\\';
    part = 1;
    switch (format) {
      case TableFormat::kMarkdown:
        if (line[i] == '|' && !escaped) return i;
        break;
      case TableFormat::kLatex:
        if (!escaped) braces += line[i] == '{' ? 1 : line[i] == '}' ? -1 : 0;
        if (line[i] == '&' && !escaped && braces == 0) return i;
        break;
      case TableFormat::kCsv:
        quoted ^= line[i] == '"';
        if (line[i] == ',' && !quoted) return i;
        break;
      case TableFormat::kHtml:
        if (line.compare(i, 5, "</td>") == 0 || line.compare(i, 5, "</th>") == 0) return part = 5, i;
        break;
      case TableFormat::kText:
      case TableFormat::kJson:
        if (line.compare(i, 2, "  ") != 0) break;
        part = line.find_first_not_of(' ', i);
        part = part == std::string::npos ? line.size() - i : part - i;
        return i;
    }
  }
  part = 0;
  return line.size();
}

std::vector<CellText> cells_of(const std::string& line, TableFormat format) {
  std::vector<CellText> cells;
  std::size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos) return cells;
  if (format == TableFormat::kMarkdown && line[at] == '|') ++at;
  for (std::size_t part = 0; at < line.size(); at += part) {
    const std::size_t end = end_of_cell(line, at, format, part);
    CellText cell = without_margins_at(line, at, end);
    if (part > 0 || !cell.text.empty()) cells.push_back(std::move(cell));
    at = end;
    if (part == 0) break;
  }
  return cells;
}

/// Which lines of two texts stand for each other: equal ones, as many as there are, and between these the
/// first with the first. A line without one has none.
std::vector<std::pair<std::optional<std::size_t>, std::optional<std::size_t>>> pairs_of(
    const std::vector<std::string>& here, const std::vector<std::string>& there) {
  constexpr std::size_t kMostCompared = 4'000'000;  // pairs of lines
  std::vector<std::pair<std::optional<std::size_t>, std::optional<std::size_t>>> pairs;
  std::vector<std::pair<std::size_t, std::size_t>> equal;
  if (here.size() * there.size() <= kMostCompared && here.size() != there.size()) {
    std::vector<std::vector<std::uint32_t>> longest(here.size() + 1,
                                                    std::vector<std::uint32_t>(there.size() + 1));
    for (std::size_t i = here.size(); i-- > 0;)
      for (std::size_t j = there.size(); j-- > 0;)
        longest[i][j] =
            here[i] == there[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    for (std::size_t i = 0, j = 0; i < here.size() && j < there.size();) {
      if (here[i] == there[j])
        equal.emplace_back(i++, j++);
      else if (longest[i + 1][j] >= longest[i][j + 1])
        ++i;
      else
        ++j;
    }
  }
  equal.emplace_back(here.size(), there.size());
  std::size_t i = 0, j = 0;
  for (const auto& [to_i, to_j] : equal) {
    while (i < to_i || j < to_j) {
      auto& pair = pairs.emplace_back();
      if (i < to_i) pair.first = i++;
      if (j < to_j) pair.second = j++;
    }
    ++i, ++j;
  }
  return pairs;
}

/// Cell by cell, where lines have equally many; otherwise the lines.
std::vector<TableDifference> line_differences(const MarkedTable& table, const std::vector<std::string>& here,
                                              const std::vector<std::string>& there) {
  std::vector<TableDifference> found;
  std::size_t last = 0;
  for (const auto& [mine, stored] : pairs_of(here, there)) {
    if (mine) last = *mine;
    const std::size_t line = table.begin + last + 1;
    if (!mine || !stored) {
      found.push_back({.file = table.file,
                       .line = line,
                       .says = mine ? without_margins(here[*mine]) : "no such line",
                       .should = stored ? without_margins(there[*stored]) : "no such line"});
      continue;
    }
    const auto ours = cells_of(here[*mine], table.format), theirs = cells_of(there[*stored], table.format);
    if (without_margins(here[*mine]) == without_margins(there[*stored])) continue;
    bool any = false;
    for (std::size_t i = 0; ours.size() == theirs.size() && i < ours.size(); ++i) {
      if (ours[i].text == theirs[i].text) continue;
      any = true;
      found.push_back({.file = table.file,
                       .line = line,
                       .at = ours[i].at + 1,
                       .row = i == 0 ? "" : ours.front().text,
                       .says = ours[i].text,
                       .should = theirs[i].text});
    }
    const bool only_margins = table.format == TableFormat::kText && ours.size() == theirs.size();
    if (!any && !only_margins)
      found.push_back({.file = table.file,
                       .line = line,
                       .says = without_margins(here[*mine]),
                       .should = without_margins(there[*stored])});
  }
  return found;
}

std::vector<std::string> texts_of(const std::vector<CellText>& cells) {
  std::vector<std::string> texts;
  for (const CellText& cell : cells) texts.push_back(cell.text);
  return texts;
}

/// A line and where it stands.
struct TableLine {
  std::vector<CellText> cells;
  std::size_t line = 0;
};

/// What tells a row from the others: its names, without what is said of the baseline, and how many rows
/// before it have them too.
std::map<std::pair<std::string, std::size_t>, TableLine> rows_of(const std::vector<std::string>& lines,
                                                                 std::size_t first,
                                                                 const std::vector<std::size_t>& names) {
  std::map<std::pair<std::string, std::size_t>, TableLine> rows;
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 2; i < lines.size(); ++i) {  // behind headings and rule
    TableLine line{cells_of(lines[i], TableFormat::kMarkdown), first + i};
    std::string key;
    for (const std::size_t cell : names) {
      if (cell >= line.cells.size()) continue;
      std::string name = line.cells[cell].text;
      if (name.starts_with("**") && name.ends_with("**") && name.size() > 4)  // the best may be another now
        name = name.substr(2, name.size() - 4);
      if (constexpr std::string_view kBaseline = "(baseline)"; name.ends_with(kBaseline))
        name = without_margins(name.substr(0, name.size() - kBaseline.size()));
      key += (key.empty() ? "" : ", ") + name;
    }
    rows.emplace(std::pair{key, seen[key]++}, std::move(line));
  }
  return rows;
}

std::vector<TableDifference> markdown_differences(const MarkedTable& table,
                                                  const std::vector<std::string>& here,
                                                  const std::vector<std::string>& there,
                                                  const std::vector<std::size_t>& names) {
  std::vector<TableDifference> found;
  const std::size_t first = table.begin + 1;
  const auto ours = cells_of(here.front(), table.format), theirs = cells_of(there.front(), table.format);
  const auto by_name = [](const std::string& row) {
    const auto end = row.find_last_not_of(", ");
    return end == std::string::npos ? std::string{} : row.substr(0, end + 1);
  };
  const auto text = [](const std::vector<CellText>& cells, std::size_t i) {
    return i < cells.size() ? cells[i].text : std::string{};
  };
  const auto place = [](const std::vector<CellText>& cells, std::size_t i) {
    return i < cells.size() ? cells[i].at + 1 : 0;
  };
  if (texts_of(ours) != texts_of(theirs)) {
    for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i)
      if (text(ours, i) != text(theirs, i))
        found.push_back({table.file, first, place(ours, i), "", "heading", text(ours, i), text(theirs, i)});
    return found;  // what stands below is of other columns
  }
  const auto mine = rows_of(here, first, names), stored = rows_of(there, first, names);
  for (const auto& [key, line] : mine) {
    const auto same = stored.find(key);
    if (same == stored.end()) {
      found.push_back({table.file, line.line, 0, by_name(key.first), "", "this row", "no such row"});
      continue;
    }
    for (std::size_t i = 0; i < std::max(line.cells.size(), same->second.cells.size()); ++i) {
      const std::string was = text(line.cells, i), is = text(same->second.cells, i);
      if (was != is)
        found.push_back(
            {table.file, line.line, place(line.cells, i), by_name(key.first), text(ours, i), was, is});
    }
  }
  for (const auto& [key, line] : stored)
    if (!mine.contains(key))
      found.push_back({table.file, table.begin + 1, 0, by_name(key.first), "", "no such row", "a row"});
  std::ranges::stable_sort(found, {}, &TableDifference::line);
  if (found.empty())  // the same rows in another order
    for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
      if (i != 1 && texts_of(cells_of(here[i], table.format)) != texts_of(cells_of(there[i], table.format))) {
        found.push_back(
            {table.file, first + i, 0, "", "", without_margins(here[i]), without_margins(there[i])});
        break;
      }
  return found;
}

/// What the store says, and which cells of a line name it.
std::pair<std::string, std::vector<std::size_t>> rendered_anew(Source& source, const MarkedTable& marked) {
  const auto table = source.table(
      marked.sweep,
      {.statistics = marked.stats, .long_form = marked.stats || marked.long_form, .pivot = marked.pivot});
  if (!marked.tuning && !table.search())
    return {printing::render_table(table, marked.format, nullptr, marked.options) +
                (marked.stats ? printing::statistics_text(table) : ""),
            printing::sheet_of(table, marked.options).naming};
  if (marked.stats || !marked.options.shown.empty() || marked.format == TableFormat::kLatex ||
      marked.format == TableFormat::kHtml)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{} is of points, as text, markdown or csv: expected no other --format, --stats or "
                    "--columns",
                    marked.sweep)};
  const auto points = source.tuning(marked.sweep);
  return {printing::tuning_text(points, marked.format, nullptr),
          points.search() ? std::vector<std::size_t>{0} : std::vector<std::size_t>{0, 1}};
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
  std::string where = at > 0 ? fmt::format("{}:{}:{}: ", file, line, at) : fmt::format("{}:{}: ", file, line);
  if (!row.empty()) where += fmt::format("row {}", row);
  if (!column.empty()) where += fmt::format("{}{}", row.empty() ? "" : ", ", column);
  if (!row.empty() || !column.empty()) where += ": ";
  return where + fmt::format("the file has '{}', the store '{}'", says, should);
}

std::vector<TableDifference> differences(const MarkedTable& table, const std::vector<std::string>& here,
                                         const std::vector<std::string>& there,
                                         const std::vector<std::size_t>& names) {
  return table.format == TableFormat::kMarkdown ? markdown_differences(table, here, there, names)
                                                : line_differences(table, here, there);
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
      auto [rendered, naming] = rendered_anew(*source, table);
      std::vector<std::string> there = lines_of(rendered);
      if (table.format == TableFormat::kMarkdown)  // the notes below it are the document's to say
        there.erase(
            std::ranges::find_if(there, [](const std::string& line) { return !line.starts_with('|'); }),
            there.end());
      const std::vector<std::string> here(lines.begin() + static_cast<std::ptrdiff_t>(table.begin),
                                          lines.begin() + static_cast<std::ptrdiff_t>(table.end));
      for (auto& difference : differences(table, here, there, naming)) found.push_back(std::move(difference));
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
                      {"at", difference.at},
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
