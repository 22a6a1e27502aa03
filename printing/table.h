// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "protocol/column.h"

namespace abl::printing {

class Medium;

enum class TableFormat { kText, kMarkdown, kCsv, kLatex, kHtml, kJson };

/// The names that `--format` takes.
inline const std::vector<std::pair<std::string, TableFormat>> kTableFormats{
    {"text", TableFormat::kText},   {"markdown", TableFormat::kMarkdown}, {"csv", TableFormat::kCsv},
    {"latex", TableFormat::kLatex}, {"html", TableFormat::kHtml},         {"json", TableFormat::kJson}};

/// The format of a name. Throws: Error{kInvalidArgument} with the nearest.
TableFormat table_format(const std::string& name);

/// How a table is printed.
struct TableOptions {
  std::vector<protocol::Shown> shown;  ///< what stands for each column; empty: as the table's file says
  std::string caption, label;          ///< of LaTeX and HTML
  bool flat = false;                   ///< without headings of groups: rows stand in an order of their own
};

/// A table in one of the formats, ended by a newline. Every format prints `Cell.text` but CSV and JSON, which
/// have the full values. Text, Markdown, LaTeX and HTML show n beside the means ("1/2" while seeds are
/// missing) and the papers' values last, under the table's paper heading. Those that people read say which
/// cells lack values and why. `medium`: of text, takes bold headings; may be null.
std::string render_table(const ablate::v1::Table& table, TableFormat format, const Medium* medium = nullptr,
                         const TableOptions& options = {});

// The formats, a file each.

std::string text_table(const ablate::v1::Table& table, const TableOptions& options, const Medium* medium);
/// The lines of the text format without the notes below it.
std::vector<std::string> table_lines(const ablate::v1::Table& table, const Medium* medium = nullptr);
std::string markdown_table(const ablate::v1::Table& table, const TableOptions& options);
/// For programs: columns by name, means and deviations apart with all their digits.
std::string csv_table(const ablate::v1::Table& table);
/// With booktabs and siunitx: columns of numbers are aligned at their points, groups of rows have a rule
/// between them. With a caption or a label it floats. Where cells lack values its last line says how many.
std::string latex_table(const ablate::v1::Table& table, const TableOptions& options);
/// A page that needs nothing else.
std::string html_table(const ablate::v1::Table& table, const TableOptions& options);
/// Text as HTML, SVG and XML have it, in one line.
std::string html_text(std::string_view text);

/// The statistics of a table that has them: for each column of metrics a line for each row, how its order
/// agrees with the paper's, and what factors explain of it.
std::string statistics_text(const ablate::v1::Table& table, const Medium* medium = nullptr);

/// How rows are tuned, or what a search found: every point, of each row the best first, and how far the
/// metric moves between them; as text, Markdown, CSV or JSON.
std::string tuning_text(const ablate::v1::TuningResponse& tuning, TableFormat format,
                        const Medium* medium = nullptr);

}  // namespace abl::printing
