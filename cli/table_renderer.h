// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"

namespace abl::cli {

class Terminal;

enum class TableFormat { kText, kMarkdown, kCsv, kLatex, kJson };

/// The names that `--format` takes.
inline const std::vector<std::pair<std::string, TableFormat>> kTableFormats{
    {"text", TableFormat::kText},
    {"markdown", TableFormat::kMarkdown},
    {"csv", TableFormat::kCsv},
    {"latex", TableFormat::kLatex},
    {"json", TableFormat::kJson}};

/// A table in one of the formats, ended by a newline. Every format prints `Cell.text` but CSV and JSON, which
/// have the full values. Text, Markdown and LaTeX show n beside the means ("1/2" while seeds are missing) and
/// the papers' values last, under the table's paper heading. `terminal`: takes bold headings in text; may be
/// null.
std::string render_table(const ablate::v1::Table& table, TableFormat format,
                         const Terminal* terminal = nullptr);

/// The lines of the text format without the notes below it.
std::vector<std::string> table_lines(const ablate::v1::Table& table, const Terminal* terminal = nullptr);

}  // namespace abl::cli
