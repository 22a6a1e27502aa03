// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/row_curves.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/tables.h"
#include "printing/selection.h"
#include "printing/sheet.h"
#include "printing/table.h"
#include "views/comparison.h"
#include "views/picked_pivot.h"

namespace abl::cli {
namespace {

namespace v1 = ablate::v1;
using printing::is_metric;
using printing::kTableFormats;
using printing::table_format;
using printing::TableFormat;

constexpr std::uint32_t kMostOnATerminal = 1000;  // rows
constexpr int kMostRunsDrawn = 2000;              // whose points are read one after the other

struct Flags {
  std::string sweep, format = "text", columns, pivot, plot, y, x, output, check;
  bool stats = false, tuning = false, long_form = false, write = false;
  printing::TableOptions options;
  printing::Selection selection;
};

bool selects(const printing::Selection& selection) {
  return !selection.sort.empty() || !selection.without.empty() || selection.complete ||
         !selection.find.empty();
}

[[noreturn]] void reject(const std::string& message) { throw Error{Code::kInvalidArgument, message}; }

/// The place of a column by its name, or of the first that will do.
template <class WillDo>
int column_named(const v1::Table& table, const std::string& flag, const std::string& name, const char* what,
                 const WillDo& will_do) {
  std::vector<std::string> names;
  for (int i = 0; i < table.columns_size(); ++i) {
    if (!will_do(table.columns(i))) continue;
    if (name.empty() || table.columns(i).name() == name) return i;
    names.push_back(table.columns(i).name());
  }
  if (names.empty() || name.empty())
    reject(fmt::format("the table of {} has no column of {}", table.sweep(), what));
  reject(fmt::format("{}: no column of {} is called '{}'; expected {}{}", flag, what, name, any_of(names),
                     did_you_mean(name, names)));
}

bool has_numbers(const v1::Column& column) {
  return is_metric(column) || column.kind() == v1::Column::KIND_COUNT ||
         column.kind() == v1::Column::KIND_EXPRESSION;
}

std::string draw_curves(Source& source, const v1::Table& table, const std::string& asked) {
  std::string metric = asked;
  for (const auto& column : table.columns())
    if (column.kind() == v1::Column::KIND_METRIC && (column.name() == asked || metric.empty()))
      metric = column.source();
  const RowCurves all = row_curves(source, table, {metric}, kMostRunsDrawn);
  if (!all.said.empty() && !all.said.contains(metric)) {
    const std::vector<std::string> names{all.said.begin(), all.said.end()};
    reject(fmt::format("--y: no run has said '{}'; expected {}{}", metric, any_of(names),
                       did_you_mean(metric, names)));
  }
  return curves_svg(table, metric, all.metrics.at(metric));
}

std::string draw(const Context& context, const Flags& flags) {
  const auto source = open_source(context);
  const Plot plot = *value_named<Plot>(flags.plot);
  if (plot == Plot::kTuning) return tuning_svg(source->tuning(flags.sweep), flags.x);
  const v1::Table table =
      source->table(flags.sweep, {.statistics = plot != Plot::kCurves, .long_form = true});
  if (plot == Plot::kCurves) return draw_curves(*source, table, flags.y);
  if (table.search())
    reject(fmt::format("{} is a search, whose table is its points: expected --plot tuning", table.sweep()));
  const int y = column_named(table, "--y", flags.y, "numbers", [&](const v1::Column& column) {
    return has_numbers(column) && (!flags.y.empty() || is_metric(column));
  });
  if (plot == Plot::kBars) return bars_svg(table, y);
  const auto can_be_x = [&](const v1::Column& column) {
    return has_numbers(column) && column.name() != table.columns(y).name();
  };
  if (flags.x.empty() && std::ranges::none_of(table.columns(), [&](const v1::Column& column) {
        return can_be_x(column) && !is_metric(column);
      })) {
    std::vector<std::string> names;
    for (const auto& column : table.columns())
      if (can_be_x(column)) names.push_back(column.name());
    reject(names.empty()
               ? fmt::format("--plot scatter draws two columns of numbers against each other, and the "
                             "table of {} has only '{}'; expected --plot bars or curves",
                             table.sweep(), table.columns(y).name())
               : fmt::format("--plot scatter: the table of {} has no count to draw '{}' against; "
                             "expected --x {}",
                             table.sweep(), table.columns(y).name(), any_of(names)));
  }
  const int x = column_named(table, "--x", flags.x, "numbers", [&](const v1::Column& column) {
    return can_be_x(column) && (!flags.x.empty() || !is_metric(column));
  });
  return scatter_svg(table, y, x);
}

/// A file's name says what is in it: another thing is not written there.
void expect_ending(const Flags& flags, bool formatted, bool json) {
  const std::filesystem::path ending = std::filesystem::path{flags.output}.extension();
  if (ending.empty()) return;
  if (!flags.plot.empty()) {
    if (ending != ".svg")
      reject(fmt::format("-o {}: --plot writes SVG; expected a name that ends in .svg", flags.output));
    return;
  }
  static const std::vector<std::pair<std::string, TableFormat>> kEndings{{".md", TableFormat::kMarkdown},
                                                                         {".csv", TableFormat::kCsv},
                                                                         {".tex", TableFormat::kLatex},
                                                                         {".json", TableFormat::kJson},
                                                                         {".html", TableFormat::kHtml}};
  for (const char* picture : {".svg", ".png", ".pdf", ".jpg", ".jpeg", ".gif", ".eps", ".webp"})
    if (ending == picture)
      reject(
          fmt::format("-o {}: a table is no picture; expected --plot with a name that ends in .svg, or "
                      "--format",
                      flags.output));
  const auto known = std::ranges::find(kEndings, ending.string(), &decltype(kEndings)::value_type::first);
  const TableFormat written = json ? TableFormat::kJson : table_format(flags.format);
  if (known == kEndings.end() || known->second == written) return;
  for (const auto& [name, format] : kTableFormats)
    if (format == known->second)
      reject(fmt::format(
          "-o {}: {}; expected --format {}, or another name", flags.output,
          formatted || json ? "the name is of another format" : "text is written where no --format is given",
          name));
}

/// Points have no form as LaTeX and HTML.
void expect_form_of_points(TableFormat format) {
  if (format == TableFormat::kLatex || format == TableFormat::kHtml)
    reject("the points of a tuning or a search are printed as text, markdown, csv or json");
}

void check_flags(const Context& context, const Flags& flags, bool formatted) {
  if (!flags.check.empty()) {
    if (!flags.sweep.empty())
      reject(fmt::format("--check reads from FILE which sweeps to compare; expected no SWEEP, got '{}'",
                         flags.sweep));
    if (formatted || !flags.plot.empty() || !flags.output.empty() || flags.stats || !flags.columns.empty() ||
        !flags.pivot.empty() || selects(flags.selection))
      reject(
          "--check reads formats and columns from FILE as well; expected no other flag than --write, --store "
          "and --json");
    return;
  }
  if (flags.write) reject("--write requires --check FILE");
  if (flags.sweep.empty()) reject("SWEEP is required, or --check FILE");
  if (context.json && formatted && flags.format != "json")
    reject(fmt::format("--json and --format {} exclude each other: expected one of them", flags.format));
  expect_ending(flags, formatted, context.json);
  if (!flags.plot.empty() && (formatted || context.json || flags.stats || !flags.columns.empty()))
    reject("--plot draws a picture: expected no --format, --json, --stats or --columns beside it");
  if (flags.plot.empty() && (!flags.y.empty() || !flags.x.empty())) reject("--y and --x require --plot");
  if (!flags.x.empty() && flags.plot != "scatter" && flags.plot != "tuning")
    reject("--x requires --plot scatter or tuning");
  if (!flags.y.empty() && flags.plot == "tuning")
    reject("--plot tuning draws the metric that points were chosen by: expected no --y");
  if (flags.tuning && (flags.stats || !flags.plot.empty() || !flags.columns.empty() || flags.long_form ||
                       !flags.pivot.empty()))
    reject(
        "--tuning shows points and not rows: expected no --stats, --plot, --columns, --long or --pivot "
        "beside "
        "it");
  if (!flags.pivot.empty() && (flags.stats || flags.long_form || !flags.plot.empty()))
    reject("--pivot cannot be combined with --stats, --long or --plot");
  if ((flags.tuning || !flags.plot.empty()) && selects(flags.selection))
    reject(
        "--sort, --without, --complete and --find apply to printed tables only: expected no --tuning or "
        "--plot");
  const TableFormat format = table_format(flags.format);
  if (flags.tuning) expect_form_of_points(format);
  if (flags.stats && format != TableFormat::kText && format != TableFormat::kCsv &&
      format != TableFormat::kJson)
    reject(fmt::format("--stats has no form as {}: expected text, csv or json", flags.format));
  if (!flags.columns.empty() && (context.json || format == TableFormat::kCsv || format == TableFormat::kJson))
    reject("--columns is of text, markdown, latex and html: csv and json have all that there is");
  if ((!flags.options.caption.empty() || !flags.options.label.empty()) && format != TableFormat::kLatex &&
      format != TableFormat::kHtml)
    reject("--caption and --label require --format latex or html");
}

Run declare_table(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  std::vector<std::string> names;
  for (const auto& [name, format] : kTableFormats) names.push_back(name);
  add_sweep(app, flags->sweep)->required(false);
  const auto* format = add_choice(app, "--format", flags->format, names, "Output format [text]",
                                  {{"tex", "latex"}, {"md", "markdown"}, {"txt", "text"}, {"htm", "html"}});
  app.add_flag(
      "--stats", flags->stats,
      "Also print intervals, differences, tests, effect sizes and what factors explain (text, csv, json)");
  app.add_flag("--tuning", flags->tuning,
               "Show how each row was tuned instead: every point, the best of each row first (text, "
               "markdown, csv, json)");
  app.add_option(
      "--columns", flags->columns,
      "What to show of each column, of value,n,paper,difference [as the sweep file says, otherwise "
      "value,n,paper]");
  app.add_flag("--long", flags->long_form,
               "Print one line for each row, even where the sweep file asks for a pivot");
  app.add_option("--pivot", flags->pivot,
                 "Put these factors along the columns and all others down the rows, whatever the "
                 "sweep file says; none: as --long")
      ->type_name("FACTOR,…");
  app.add_option("--sort", flags->selection.sort,
                 "Sort rows by this column, or in descending order by -COLUMN; by COLUMN.paper, the paper's "
                 "values, or by row, their ids [the file's order]")
      ->type_name("COLUMN");
  app.add_option("--without", flags->selection.without, "Leave these columns out")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COLUMN,…");
  app.add_flag("--complete", flags->selection.complete, "Print only rows that have all their values");
  app.add_option("--find", flags->selection.find,
                 "Print only rows with each of these words in id, label, group or a setting")
      ->type_name("WORDS");
  app.add_option("--caption", flags->options.caption, "Caption above the table (latex, html)");
  app.add_option("--label", flags->options.label, "Label that other text can refer to (latex, html)");
  add_choice(app, "--plot", flags->plot, names_of<Plot>(),
             "Draw it as SVG instead: bars, scatter, curves or tuning");
  app.add_option("--y", flags->y,
                 "With --plot: the column to draw [the first metric]; for curves, the name of any metric");
  app.add_option("--x", flags->x,
                 "With --plot scatter: the column along the x axis [the first count]; with tuning: the key");
  app.add_option("-o,--output", flags->output, "Write to this file [standard output]")->type_name("FILE");
  app.add_option("--check", flags->check,
                 "Compare the tables of this document that have a marker with the store, cell by cell")
      ->type_name("FILE");
  app.add_flag("--write", flags->write, "With --check: update the document");
  add_source(app, context);
  return [&context, flags, format]() -> int {
    if (flags->pivot == kNoPivot) flags->pivot.clear(), flags->long_form = true;
    check_flags(context, *flags, format->count() > 0);
    if (!flags->check.empty()) return check_tables(context, flags->check, flags->write);
    if (!flags->columns.empty()) flags->options.shown = printing::shown_named(flags->columns);
    const auto write = [&](const std::string& text) {
      if (flags->output.empty())
        context.out.write(text);
      else
        write_file_atomically(flags->output, text);
    };
    if (!flags->plot.empty()) {
      write(draw(context, *flags));
      return kExitOk;
    }
    const TableFormat named = table_format(flags->format);
    const bool for_terminal = flags->output.empty();
    const auto write_points = [&](Source& source) {
      expect_form_of_points(named);
      const auto tuning = shown(source.tuning(flags->sweep), context.out);
      if (context.json && flags->output.empty())
        context.print_json(tuning);
      else
        write(printing::tuning_text(tuning, context.json ? TableFormat::kJson : named,
                                    for_terminal ? &context.out : nullptr));
      return kExitOk;
    };
    const auto source = open_source(context);
    if (flags->tuning) return write_points(*source);
    const bool is_for_eyes =
        for_terminal && context.out.interactive() && !context.json && named == TableFormat::kText;
    const bool chosen = selects(flags->selection);
    auto table = source->table(flags->sweep, {.rows = is_for_eyes && !chosen ? kMostOnATerminal : 0,
                                              .statistics = flags->stats,
                                              .long_form = flags->stats || flags->long_form,
                                              .pivot = views::factors_named(flags->pivot)});
    if (table.search() && (flags->stats || !flags->columns.empty() || chosen))
      reject(fmt::format(
          "{} is a search: its table lists points and not rows; expected no --stats, --columns, --sort, "
          "--without, --complete or --find",
          table.sweep()));
    if (table.search()) return write_points(*source);
    printing::select(table, flags->selection);
    flags->options.flat = !flags->selection.sort.empty();
    if (is_for_eyes && table.rows_size() > static_cast<int>(kMostOnATerminal)) {
      table.set_left_out(static_cast<std::uint32_t>(table.rows_size()) - kMostOnATerminal);
      table.mutable_rows()->DeleteSubrange(kMostOnATerminal, static_cast<int>(table.left_out()));
    }
    const auto printed = for_terminal ? shown(table, context.out) : table;
    const Terminal* terminal = for_terminal ? &context.out : nullptr;
    if (context.json && for_terminal)
      context.print_json(table);
    else
      write(printing::render_table(printed, context.json ? TableFormat::kJson : named, terminal,
                                   flags->options) +
            (flags->stats && !context.json && named == TableFormat::kText
                 ? printing::statistics_text(printed, terminal)
                 : ""));
    if (is_for_eyes && table.left_out() > 0)
      context.out.line(fmt::format("{} not shown: a pipe, a file or --format csv has all",
                                   plural(table.left_out(), "more row")));
    return kExitOk;
  };
}

}  // namespace

extern const Command kTableCommand{
    .place = 150,
    .name = "table",
    .summary = "Print a sweep's table",
    .example =
        "ablate table msf-sharing --format latex > table.tex\n"
        "ablate table msf-sharing --plot scatter -o accuracy.svg\n"
        "ablate table --check docs/results.md --store results.db",
    .failure = "with --check: a table says another thing than the store; otherwise internal error",
    .declare = declare_table,
};

}  // namespace abl::cli
