// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "printing/notes.h"
#include "printing/sheet.h"
#include "printing/table.h"

namespace abl::printing {
namespace {

using ablate::v1::Table;

std::string latex_text(std::string_view text) {
  static const std::map<std::string_view, std::string> kWords{{"\\", "\\textbackslash{}"},
                                                              {"&", "\\&"},
                                                              {"%", "\\%"},
                                                              {"$", "\\$"},
                                                              {"#", "\\#"},
                                                              {"_", "\\_"},
                                                              {"{", "\\{"},
                                                              {"}", "\\}"},
                                                              {"~", "\\textasciitilde{}"},
                                                              {"^", "\\textasciicircum{}"},
                                                              {"<", "\\textless{}"},
                                                              {">", "\\textgreater{}"},
                                                              {"|", "\\textbar{}"},
                                                              {"[", "{[}"},  // behind \\ it would be a length
                                                              {"*", "{*}"},  // and this a part of it
                                                              {"±", "$\\pm$"},
                                                              {"–", "--"},
                                                              {"−", "$-$"},
                                                              {"×", "$\\times$"},
                                                              {"Δ", "$\\Delta$"},
                                                              {"α", "$\\alpha$"},
                                                              {"β", "$\\beta$"},
                                                              {"γ", "$\\gamma$"},
                                                              {"δ", "$\\delta$"},
                                                              {"ε", "$\\varepsilon$"},
                                                              {"η", "$\\eta$"},
                                                              {"θ", "$\\theta$"},
                                                              {"κ", "$\\kappa$"},
                                                              {"λ", "$\\lambda$"},
                                                              {"μ", "$\\mu$"},
                                                              {"ρ", "$\\rho$"},
                                                              {"σ", "$\\sigma$"},
                                                              {"τ", "$\\tau$"},
                                                              {"φ", "$\\varphi$"},
                                                              {"ω", "$\\omega$"},
                                                              {"→", "$\\rightarrow$"},
                                                              {"←", "$\\leftarrow$"},
                                                              {"≈", "$\\approx$"},
                                                              {"√", "$\\surd$"},
                                                              {"∞", "$\\infty$"},
                                                              {"≥", "$\\geq$"},
                                                              {"≤", "$\\leq$"},
                                                              {"↑", "$\\uparrow$"},
                                                              {"↓", "$\\downarrow$"},
                                                              {"≠", "$\\neq$"},
                                                              {"†", "$^\\dagger$"},
                                                              {"‡", "$^\\ddagger$"},
                                                              {"¶", "$^\\P$"},
                                                              {"§", "$^\\S$"}};
  const std::string line = printable_line(text);
  std::string escaped;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at + 1;
    while (end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) ++end;
    const std::string_view character = std::string_view{line}.substr(at, end - at);
    const auto word = kWords.find(character);
    escaped += word == kWords.end() ? std::string{character} : word->second;
    at = end;
  }
  return escaped;
}

/// "79.79 ± 0.12 †" as siunitx reads it, and what stands behind.
struct LatexNumber {
  std::string mean, sd, mark;
  std::size_t before = 0, after = 0;  // digits of the mean
  bool negative = false;
};

bool is_plain_number(std::string_view text) {
  const std::size_t start = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return text.size() > start && text.size() < 20 &&
         text.find_first_not_of("0123456789.", start) == std::string_view::npos &&
         std::ranges::count(text, '.') <= 1 && text.back() != '.' && text[start] != '.';
}

std::optional<LatexNumber> latex_number(std::string text) {
  LatexNumber number;
  for (const std::string_view mark : {" †", " ‡", " §", " ¶", " † ‡"})
    if (text.ends_with(mark)) number.mark = mark.substr(1);
  if (!number.mark.empty()) text.resize(text.size() - number.mark.size() - 1);
  if (constexpr std::string_view kMinus = "−"; text.starts_with(kMinus)) text.replace(0, kMinus.size(), "-");
  constexpr std::string_view kPlusMinus = " ± ";
  const auto sd = text.find(kPlusMinus);
  number.mean = text.substr(0, sd);
  if (sd != std::string::npos) number.sd = text.substr(sd + kPlusMinus.size());
  if (!is_plain_number(number.mean) || (!number.sd.empty() && !is_plain_number(number.sd)))
    return std::nullopt;
  number.negative = number.mean[0] == '-' || number.mean[0] == '+';
  const std::string digits = number.mean.substr(number.negative ? 1 : 0);
  const auto point = digits.find('.');
  number.before = std::min(point, digits.size());
  number.after = point == std::string::npos ? 0 : digits.size() - point - 1;
  return number;
}

/// "S[table-format=2.2(2)]": as wide as its numbers; "r" or "l" where a column has none.
std::string alignment_of(const Sheet& sheet, std::size_t column) {
  if (!sheet.columns[column].right_aligned) return "l";
  std::size_t before = 0, after = 0, spread = 0;
  bool any = false, sign = false;
  for (const auto& row : sheet.rows) {
    const auto number = latex_number(row.cells[column]);
    if (!number) continue;
    any = true;
    before = std::max(before, number->before);
    after = std::max(after, number->after);
    sign |= number->negative;
    if (number->sd.empty()) continue;
    const std::size_t first = std::min(number->sd.find_first_not_of("0."), number->sd.size() - 1);
    const auto figures =
        static_cast<std::size_t>(std::count_if(number->sd.begin() + static_cast<std::ptrdiff_t>(first),
                                               number->sd.end(), [](char c) { return c != '.'; }));
    spread = std::max(spread, figures);
  }
  if (!any) return "r";
  return fmt::format("S[table-format={}{}{}{}]", sign ? "-" : "", before,
                     after > 0 ? fmt::format(".{}", after) : "",
                     spread > 0 ? fmt::format("({})", spread) : "");
}

/// A cell of a column of numbers, or of text: what is no number stands in braces there.
std::string latex_cell(const Sheet::Row& row, std::size_t column, const std::string& text, bool numbers) {
  const std::string& printed = row.marks[column];
  const bool bold = row.best[column] || printed == "bold", underlined = row.underlined(column);
  std::string doubt = printed == "doubtful" ? kDoubt : "";
  if (!row.signs[column].empty()) doubt += "\\," + latex_text(row.signs[column]);
  const auto number = numbers ? latex_number(text) : std::nullopt;
  if (!number || underlined) {
    std::string plain = latex_text(text);
    if (number)
      plain = number->sd.empty()
                  ? fmt::format("\\num{{{}}}{}", number->mean, latex_text(number->mark))
                  : fmt::format("\\num{{{} +- {}}}{}", number->mean, number->sd, latex_text(number->mark));
    if (underlined) plain = "\\underline{" + plain + "}";
    if (bold) plain = "\\textbf{" + plain + "}";
    return numbers ? "{" + plain + doubt + "}" : plain + doubt;
  }
  std::string shown = bold ? "\\bfseries " : "";
  shown += number->mean;
  if (!number->sd.empty()) shown += " +- " + number->sd;
  if (!number->mark.empty()) shown += "{" + latex_text(number->mark) + "}";
  if (!doubt.empty()) shown += "{" + doubt + "}";
  return shown;
}

/// The line of headings that several columns share, and the rules below it; empty where there are none.
std::string group_heads(const Sheet& sheet) {
  std::string heads, rules;
  bool any = false;
  for (std::size_t first = 0; first < sheet.columns.size();) {
    const std::string& group = sheet.columns[first].group;
    std::size_t end = first + 1;
    while (!group.empty() && end < sheet.columns.size() && sheet.columns[end].group == group) ++end;
    if (first > 0) heads += " & ";
    if (!group.empty()) {
      heads += fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", end - first, latex_text(group));
      rules += fmt::format("\\cmidrule(lr){{{}-{}}}\n", first + 1, end);
      any = true;
    }
    first = end;
  }
  return any ? heads + " \\\\\n" + rules : "";
}

/// A last line of the table itself, so that nobody takes one for whole that is not, wherever it is put;
/// short, for it must not make the table wider. Comments below say which cells and why.
std::string gap_line(const Gaps& gaps, std::size_t columns) {
  return fmt::format("\\multicolumn{{{}}}{{l}}{{\\footnotesize --: {} cell{} without all values}} \\\\\n",
                     columns, gaps.cells, gaps.cells == 1 ? "" : "s");
}

}  // namespace

std::string latex_table(const Table& table, const TableOptions& options) {
  const Sheet sheet = sheet_of(table, options);
  std::string alignment, heads, body;
  std::vector<bool> numbers;
  for (std::size_t column = 0; column < sheet.columns.size(); ++column) {
    const std::string aligned = alignment_of(sheet, column);
    alignment += aligned;
    numbers.push_back(aligned.starts_with('S'));
    const std::string heading = latex_text(sheet.columns[column].heading);
    heads += (column ? " & " : "") + (numbers.back() ? "{" + heading + "}" : heading);
  }
  std::string group;
  for (std::size_t i = 0; i < sheet.rows.size(); ++i) {
    const Sheet::Row& row = sheet.rows[i];
    if (row.group != group) {
      if (i > 0) body += "\\midrule\n";
      if (!row.group.empty())
        body += fmt::format("\\multicolumn{{{}}}{{l}}{{\\textit{{{}}}}} \\\\\n", row.cells.size(),
                            latex_text(row.group));
      group = row.group;
    }
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      std::string text = row.cells[column];
      if (row.baseline && column + 1 == sheet.names) text += text.empty() ? "(baseline)" : " (baseline)";
      body += (column ? " & " : "") + latex_cell(row, column, text, numbers[column]);
    }
    body += " \\\\\n";
  }
  const Gaps gaps = gaps_of(table);
  if (gaps.cells > 0) body += "\\midrule\n" + gap_line(gaps, sheet.columns.size());
  std::string latex = "% needs \\usepackage{booktabs,siunitx}\n";
  const bool floats = !options.caption.empty() || !options.label.empty();
  if (floats) latex += "\\begin{table}\n\\centering\n";
  if (!options.caption.empty()) latex += fmt::format("\\caption{{{}}}\n", latex_text(options.caption));
  if (!options.label.empty()) latex += fmt::format("\\label{{{}}}\n", options.label);
  latex += "\\begingroup\n\\sisetup{separate-uncertainty=true,detect-weight=true}\n";
  latex += fmt::format(
      "\\begin{{tabular}}{{{}}}\n\\toprule\n{}{} "
      "\\\\\n\\midrule\n{}\\bottomrule\n\\end{{tabular}}\n\\endgroup\n",
      alignment, group_heads(sheet), heads, body);
  if (floats) latex += "\\end{table}\n";
  if (const std::string legend = comparison_legend(table); !legend.empty())
    latex += "% " + printable_line(legend) + "\n";
  for (const std::string& gap : gaps.lines) latex += "% – " + printable_line(gap) + "\n";
  for (const auto& note : table.notes()) latex += "% " + printable_line(note) + "\n";
  return latex;
}

}  // namespace abl::printing
