// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "printing/table.h"

/// What `ablate table` does beside printing: pictures of tables, and tables in documents.
namespace abl::cli {

struct Context;

enum class Plot { kBars, kScatter, kCurves, kTuning };
constexpr std::string_view name_of(Plot plot) {
  switch (plot) {
    case Plot::kBars:
      return "bars";
    case Plot::kScatter:
      return "scatter";
    case Plot::kCurves:
      return "curves";
    case Plot::kTuning:
      return "tuning";
  }
  return {};
}

/// What a row's runs said of a metric at a step, one value for each seed.
struct Curve {
  std::string row, label;
  bool baseline = false;
  std::map<std::uint32_t, std::vector<double>> points;  ///< by step
  std::set<std::uint32_t> gaps{};  ///< steps at which a seed's value is not finite, and later ones are
  /// The first step from which on a seed's values are not finite: the mean ends before it, for one of the
  /// others would be of the lucky ones.
  std::optional<std::uint32_t> diverged_at{};
};

// Pictures of a table in its long form, as SVG (table_plot.cc, table_tuning_plot.cc): the same bytes for the
// same table. `y` and `x` are places of columns. Throws (all): Error{kFailedPrecondition} where there is
// nothing to draw.

/// Each row's mean with the interval of its statistics, where it has them. Bars begin at zero; where that
/// would hide the differences they are dots, on an axis that does not.
std::string bars_svg(const ablate::v1::Table& table, int y);
/// A dot for each row, with its name: accuracy against params.
std::string scatter_svg(const ablate::v1::Table& table, int y, int x);
/// A line for each row over the steps: the mean of its seeds, in a band of their standard deviation.
std::string curves_svg(const ablate::v1::Table& table, const std::string& metric,
                       const std::vector<Curve>& curves);

/// Metric against a tuned key (empty: the first that is a number), a colour for each row, what was chosen
/// large.
std::string tuning_svg(const ablate::v1::TuningResponse& tuning, const std::string& key);

// Tables in documents (table_check.cc).

/// A table of a document and the command that writes it, in a comment before it:
///   <!-- ablate table msf-table-1 --format markdown --columns value,paper -->
struct MarkedTable {
  std::string file;
  std::size_t line = 0;  ///< of the marker, from 1
  std::string sweep, store;
  printing::TableFormat format = printing::TableFormat::kText;
  printing::TableOptions options;
  bool long_form = false, stats = false, tuning = false;
  std::vector<std::string> pivot{};
  std::size_t begin = 0, end = 0;  ///< of the table's lines, from 0
};

/// `--pivot none`: a line for each row, as `--long`.
inline constexpr const char* kNoPivot = "none";

/// Every marked table of a document's lines; in Markdown the lines that begin with '|', in any other format a
/// fenced block. Markers inside of such blocks are none: they show what a marker is. Throws:
/// Error{kInvalidArgument} "file:line: …" at a marker that is wrong, or that no table follows.
std::vector<MarkedTable> marked_tables(const std::vector<std::string>& lines, const std::string& file);

/// One place where a document says another thing than the store.
struct TableDifference {
  std::string file;
  std::size_t line = 0, at = 0;  ///< from 1; `at` 0: the whole line
  std::string row{}, column{};   ///< or empty, where it is of a whole line
  std::string says, should;      ///< of the document, of the store
  std::string text() const;
};

/// What differs between the lines of a table in a document, from `line` on, and as the store has it: cell by
/// cell. `names`: the columns that tell its rows apart (printing::Sheet::naming).
std::vector<TableDifference> differences(const MarkedTable& table, const std::vector<std::string>& here,
                                         const std::vector<std::string>& there,
                                         const std::vector<std::size_t>& names);

/// `ablate table --check FILE`: makes each marked table anew; with `write` the file gets what it should say.
/// Returns: the exit code, 1 where something differs and is not written.
int check_tables(const Context& context, const std::filesystem::path& file, bool write);

}  // namespace abl::cli
