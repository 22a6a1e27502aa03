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
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/table_renderer.h"
#include "cli/table_sheet.h"

namespace abl::cli {
namespace {

namespace v1 = ablate::v1;

constexpr std::uint32_t kMostOnATerminal = 1000;  // rows
constexpr int kMostRunsDrawn = 2000;              // whose points are read one after the other

struct Flags {
  std::string sweep, format = "text", columns, plot, y, x, output, check;
  bool stats = false, long_form = false, write = false;
  TableOptions options;
};

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
  std::vector<Curve> curves;
  std::map<std::string, std::size_t> places;
  std::map<std::string, int> labels;
  for (const auto& row : table.rows()) ++labels[row.label()];
  for (const auto& row : table.rows()) {
    places[row.id()] = curves.size();
    const bool repeats = labels[row.label()] > 1 && row.label() != row.id();
    curves.push_back({.row = row.id(),
                      .label = row.label().empty() ? row.id()
                               : repeats           ? row.id() + ": " + row.label()
                                                   : row.label(),
                      .baseline = row.id() == (row.baseline().empty() ? table.baseline() : row.baseline()),
                      .points = {}});
  }
  std::set<std::string> said;
  const auto sweep = source.sweep(table.sweep());
  if (sweep.trials_size() > kMostRunsDrawn)
    reject(fmt::format("{} has {} trials: too many curves for a picture; expected at most {}", table.sweep(),
                       sweep.trials_size(), kMostRunsDrawn));
  for (const auto& trial : sweep.trials()) {
    const auto place = places.find(trial.row());
    const bool counts =
        trial.state() == v1::TRIAL_STATE_COMPLETED || trial.state() == v1::TRIAL_STATE_RUNNING;
    if (trial.run() == 0 || place == places.end() || !counts) continue;
    const auto points = source.metrics(trial.run());
    for (const auto& run : points.series()) {
      said.insert(run.series().name());
      if (run.series().name() != metric) continue;
      for (int i = 0; i < run.series().steps_size(); ++i)
        if (std::isfinite(run.series().values(i)))
          curves[place->second].points[run.series().steps(i)].push_back(run.series().values(i));
    }
  }
  if (!said.empty() && !said.contains(metric)) {
    const std::vector<std::string> names{said.begin(), said.end()};
    reject(fmt::format("--y: no run has said '{}'; expected {}{}", metric, any_of(names),
                       did_you_mean(metric, names)));
  }
  return curves_svg(table, metric, curves);
}

std::string draw(const Context& context, const Flags& flags) {
  const auto source = open_source(context);
  const Plot plot = *value_named<Plot>(flags.plot);
  const v1::Table table = source->table(flags.sweep, 0, plot != Plot::kCurves, true);
  if (plot == Plot::kCurves) return draw_curves(*source, table, flags.y);
  const int y = column_named(table, "--y", flags.y, "numbers", [&](const v1::Column& column) {
    return has_numbers(column) && (!flags.y.empty() || is_metric(column));
  });
  if (plot == Plot::kBars) return bars_svg(table, y);
  const int x = column_named(table, "--x", flags.x, "numbers", [&](const v1::Column& column) {
    return has_numbers(column) && column.name() != table.columns(y).name() &&
           (!flags.x.empty() || !is_metric(column));
  });
  return scatter_svg(table, y, x);
}

void check_flags(const Context& context, const Flags& flags, bool formatted) {
  if (!flags.check.empty()) {
    if (!flags.sweep.empty())
      reject(fmt::format("--check takes the sweeps from the file's markers: expected no SWEEP, got '{}'",
                         flags.sweep));
    if (formatted || !flags.plot.empty() || !flags.output.empty() || flags.stats || !flags.columns.empty())
      reject(
          "--check takes everything else from the file's markers: expected --write, --store or no other "
          "flag");
    return;
  }
  if (flags.write) reject("--write requires --check FILE");
  if (flags.sweep.empty()) reject("SWEEP is required, or --check FILE");
  if (context.json && formatted && flags.format != "json")
    reject(fmt::format("--json and --format {} exclude each other: expected one of them", flags.format));
  if (!flags.plot.empty() && (formatted || context.json || flags.stats || !flags.columns.empty()))
    reject("--plot draws a picture: expected no --format, --json, --stats or --columns beside it");
  if (flags.plot.empty() && (!flags.y.empty() || !flags.x.empty())) reject("--y and --x require --plot");
  if (!flags.x.empty() && flags.plot != "scatter") reject("--x requires --plot scatter");
  const TableFormat format = table_format(flags.format);
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
  const auto* format = add_choice(app, "--format", flags->format, names, "How to print it [text]",
                                  {{"tex", "latex"}, {"md", "markdown"}, {"txt", "text"}, {"htm", "html"}});
  app.add_flag("--stats", flags->stats,
               "Also intervals, differences, tests, effect sizes and what factors explain (text, csv, json)");
  app.add_option("--columns", flags->columns,
                 "What stands for each column, of value,n,paper,difference [as the sweep file says, else the "
                 "first three]");
  app.add_flag("--long", flags->long_form, "A line for each row, where the sweep file asks for a pivot");
  app.add_option("--caption", flags->options.caption, "Above the table (latex, html)");
  app.add_option("--label", flags->options.label, "What other text refers to it by (latex, html)");
  add_choice(app, "--plot", flags->plot, names_of<Plot>(), "Draw it as SVG: bars, scatter or curves");
  app.add_option("--y", flags->y, "The column to draw [the first metric]; of curves also any metric's name");
  app.add_option("--x", flags->x, "The column to draw it against (scatter) [the first count]");
  app.add_option("-o,--output", flags->output, "Write it to this file [standard output]");
  app.add_option("--check", flags->check,
                 "Make the tables of a document anew that have a marker, and say what differs");
  app.add_flag("--write", flags->write, "With --check: put into the document what the store says");
  add_source(app, context);
  return [&context, flags, format]() -> int {
    check_flags(context, *flags, format->count() > 0);
    if (!flags->check.empty()) return check_tables(context, flags->check, flags->write);
    if (!flags->columns.empty()) flags->options.shown = shown_named(flags->columns);
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
    const bool is_for_eyes =
        for_terminal && context.out.interactive() && !context.json && named == TableFormat::kText;
    const auto table = open_source(context)->table(flags->sweep, is_for_eyes ? kMostOnATerminal : 0,
                                                   flags->stats, flags->stats || flags->long_form);
    const auto printed = for_terminal ? shown(table, context.out) : table;
    const Terminal* terminal = for_terminal ? &context.out : nullptr;
    if (context.json && for_terminal)
      context.print_json(table);
    else
      write(render_table(printed, context.json ? TableFormat::kJson : named, terminal, flags->options) +
            (flags->stats && !context.json && named == TableFormat::kText ? statistics_text(printed, terminal)
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
