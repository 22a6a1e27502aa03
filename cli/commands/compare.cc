// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/sweep_checks.h"
#include "planning/validate.h"
#include "printing/grid.h"
#include "sweeps/paper_sweeps.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;

constexpr int kLeastOfAText = 12;
constexpr std::uint32_t kPointsOfACurve = 20;
constexpr std::uint32_t kPointsInJson = 1000;

/// A paper's table, "msf/table-1", is its sweep; "msf/table-1/a" a row of it.
std::string target_of(const std::string& written) {
  const auto slash = written.find('/');
  if (slash == std::string::npos) return written;
  const auto second = written.find('/', slash + 1);
  const std::string paper = written.substr(0, slash);
  const std::string table =
      written.substr(slash + 1, second == std::string::npos ? second : second - slash - 1);
  std::vector<sweeps::PaperSweep> tables;
  try {
    tables = sweeps::paper_sweeps(paper);
  } catch (const Error&) {  // no paper: a sweep of that name
    return written;
  }
  const auto found = std::ranges::find(tables, table, &sweeps::PaperSweep::table);
  if (found == tables.end()) return written;
  return planning::parse(read_sweep_file(found->file.string())).name +
         (second == std::string::npos ? "" : written.substr(second));
}

std::string side_text(const char* letter, const ComparedSide& side) {
  std::string text = fmt::format("{}  {}", letter, side.name());
  if (side.kind() == "sweep")
    return text + fmt::format("  {}, {} of {} completed\n", plural(side.rows(), "row"), side.completed(),
                              plural(side.trials(), "trial"));
  if (!side.label().empty() && side.label() != side.row()) text += "  " + side.label();
  if (side.kind() == "row")
    return text + fmt::format("  {} of {} completed\n", side.completed(), plural(side.trials(), "trial"));
  const std::string place =
      side.sweep().empty() ? "" : fmt::format(" of {}/{}, seed {}", side.sweep(), side.row(), side.seed());
  return text + fmt::format("  run {}{}, {}\n", side.run(), place, side.state());
}

std::string or_dash(const std::string& text) { return text.empty() ? "–" : text; }

std::string settings_text(const google::protobuf::RepeatedPtrField<ComparedSetting>& settings,
                          const std::string& heading, const Terminal& terminal) {
  if (settings.empty()) return "";
  printing::Grid grid{
      {{heading}, {.heading = "A", .least = kLeastOfAText}, {.heading = "B", .least = kLeastOfAText}}};
  for (const auto& each : settings) grid.add({each.key(), or_dash(each.a()), or_dash(each.b())});
  grid.fit_to(terminal.width());
  return "\n" + grid.text(&terminal);
}

std::string verdict_text(const ComparedMetric& metric) {
  switch (metric.verdict()) {
    case Comparison::VERDICT_BETTER:
      return "B is better";
    case Comparison::VERDICT_WORSE:
      return "A is better";
    case Comparison::VERDICT_DIFFERENT:
      return "different";
    default:
      return metric.why();
  }
}

std::string p_text(const ComparedMetric& metric) {
  if (!metric.has_p_corrected()) return "–";
  return metric.p_corrected() < 1e-4 ? "< 0.0001" : fmt::format("{:.2g}", metric.p_corrected());
}

enum Rank { kVerdict = 1, kEffect, kInterval };

bool is_corrected(const ComparedMetric& metric) {
  return metric.has_p_corrected() && metric.p_corrected() != metric.p();
}

printing::Grid metric_grid(const char* first, bool corrected) {
  return printing::Grid{{{first},
                         {"A", true},
                         {"B", true},
                         {"B − A", true},
                         {.heading = "95 % interval", .rank = kInterval},
                         {corrected ? "corrected p" : "p", true},
                         {.heading = "g", .right_aligned = true, .rank = kEffect},
                         {.heading = "", .least = kLeastOfAText, .rank = kVerdict}}};
}

std::string name_of(const ComparedMetric& metric) {
  const std::string taken = fmt::format("{} {}", metric.take(), metric.metric());
  return metric.unit().empty() ? taken : fmt::format("{} ({})", taken, metric.unit());
}

void add(printing::Grid& grid, std::string name, const ComparedMetric& metric) {
  grid.add({std::move(name), metric.a().text(), metric.b().text(), or_dash(metric.difference_text()),
            or_dash(metric.interval_text()), p_text(metric),
            metric.has_g() ? fmt::format("{:.2f}", metric.g()) : "–", verdict_text(metric)});
}

std::string grid_text(printing::Grid grid, const Terminal& terminal) {
  std::vector<std::string> left_out;
  for (const auto& column : grid.fit_to(terminal.width()))
    left_out.push_back(column.heading.empty() ? "verdict" : column.heading);
  std::string text = "\n" + grid.text(&terminal);
  if (!left_out.empty())
    text +=
        fmt::format("no room for: {} (a wider terminal, or --json, has them)\n", fmt::join(left_out, ", "));
  return text;
}

/// Where the mean curves cross: "cross at step 1,200 (B higher from there on)".
std::string crossings_text(const ComparedCurves& curves) {
  if (curves.crossings().empty()) return "they do not cross";
  std::vector<std::string> texts;
  constexpr int kSaid = 3;
  for (int i = std::max(0, curves.crossings_size() - kSaid); i < curves.crossings_size(); ++i)
    texts.push_back(fmt::format("step {} ({} higher from there)", format_count(curves.crossings(i).step()),
                                curves.crossings(i).higher() == "a" ? "A" : "B"));
  const auto before = static_cast<std::uint64_t>(curves.crossings_in_all()) - texts.size();
  return fmt::format("they cross at {}{}", before > 0 ? fmt::format("{} steps before, then at ", before) : "",
                     fmt::join(texts, ", "));
}

/// In a line: where they end, the best of each, where they cross.
std::string curves_line(const std::string& name, const ComparedCurves& curves) {
  std::string best;
  if (curves.has_a_best())
    best =
        fmt::format("; best A {:.6g} at step {}, B {:.6g} at step {}", curves.a_best(),
                    format_count(curves.a_best_step()), curves.b_best(), format_count(curves.b_best_step()));
  return fmt::format("{}, steps {} to {}: last value A {:.6g}, B {:.6g}{}; {}{}\n", name,
                     format_count(curves.first_step()), format_count(curves.last_step()), curves.a_last(),
                     curves.b_last(), best, crossings_text(curves),
                     curves.thinned() ? " (approximate: too many points to use all)" : "");
}

std::string curves_text(const CompareResponse& compared, bool with_points, const Terminal& terminal) {
  std::string text;
  for (const auto& row : compared.rows())
    for (const auto& metric : row.metrics())
      if (metric.has_curves())
        text += curves_line(fmt::format("{}: {}", row.id(), metric.metric()), metric.curves());
  for (const auto& metric : compared.metrics()) {
    if (!metric.has_curves()) continue;
    const auto& curves = metric.curves();
    text += curves_line(metric.metric(), curves);
    if (!with_points) continue;
    printing::Grid grid{{{"step", true}, {"A", true}, {"B", true}, {"B − A", true}}};
    for (int i = 0; i < curves.steps_size(); ++i)
      grid.add({format_count(curves.steps(i)), fmt::format("{:.6g}", curves.a(i)),
                fmt::format("{:.6g}", curves.b(i)), fmt::format("{:+.4g}", curves.b(i) - curves.a(i))});
    text += grid.text(&terminal) + "\n";
  }
  return text.empty() ? "" : fmt::format("\n{}\n{}", terminal.paint(Style::kBold, "mean curves"), text);
}

std::string values_text(const CompareResponse& compared, const Terminal& terminal) {
  if (compared.metrics().empty()) return "\nneither side reported a metric\n";
  printing::Grid grid = metric_grid("metric", std::ranges::any_of(compared.metrics(), is_corrected));
  for (const auto& metric : compared.metrics()) add(grid, name_of(metric), metric);
  return grid_text(std::move(grid), terminal);
}

std::string rows_text(const CompareResponse& compared, const Terminal& terminal) {
  std::string text;
  if (compared.rows().empty()) return "\nno row is in both\n";
  for (int column = 0; column < compared.rows(0).metrics_size(); ++column) {
    text += fmt::format("\n{}", terminal.paint(Style::kBold, name_of(compared.rows(0).metrics(column))));
    const auto corrected = [&](const ComparedRow& row) { return is_corrected(row.metrics(column)); };
    printing::Grid grid = metric_grid("row", std::ranges::any_of(compared.rows(), corrected));
    for (const auto& row : compared.rows()) add(grid, row.id(), row.metrics(column));
    text += grid_text(std::move(grid), terminal);
  }
  printing::Grid grid{
      {{"row"}, {"key"}, {.heading = "A", .least = kLeastOfAText}, {.heading = "B", .least = kLeastOfAText}}};
  for (const auto& row : compared.rows())
    for (const auto& setting : row.settings())
      grid.add({row.id(), setting.key(), or_dash(setting.a()), or_dash(setting.b())});
  grid.fit_to(terminal.width());
  return text + (grid.empty() ? "" : "\n" + grid.text(&terminal));
}

std::string lonely_text(const char* letter, const google::protobuf::RepeatedPtrField<std::string>& ids,
                        std::uint32_t rows, std::uint32_t common) {
  if (ids.empty()) return "";
  const std::uint64_t more = rows - common - static_cast<std::uint32_t>(ids.size());
  return fmt::format("in {} alone: {}{}\n", letter, fmt::join(ids, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string text_of(const CompareResponse& compared, bool with_points, const Terminal& terminal) {
  std::string text = side_text("A", compared.a()) + side_text("B", compared.b());
  const bool are_sweeps = compared.a().kind() == "sweep";
  if (compared.settings().empty())
    text += are_sweeps ? "" : "\nboth run the same\n";
  else
    text += settings_text(compared.settings(), are_sweeps ? "in every row" : "key", terminal);
  text += settings_text(compared.environment(), "ran with", terminal);
  text += are_sweeps ? rows_text(compared, terminal) : values_text(compared, terminal);
  text += curves_text(compared, with_points, terminal);
  text += "\n" + compared.legend() + "\n";
  if (are_sweeps) {
    text += lonely_text("A", compared.only_a(), compared.a().rows(), compared.common());
    text += lonely_text("B", compared.only_b(), compared.b().rows(), compared.common());
    if (compared.left_out() > 0)
      text += fmt::format("{} of both not shown: --first {} goes on\n", plural(compared.left_out(), "row"),
                          compared.next());
  }
  for (const auto& note : compared.notes()) text += "note: " + note + "\n";
  return text;
}

Run declare_compare(CLI::App& app, Context& context) {
  struct Flags {
    std::string a, b, test;
    std::vector<std::string> metrics;
    bool curves = false;
    std::uint32_t first = 0;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("A", flags->a, "SWEEP, SWEEP/ROW, SWEEP/ROW/SEED (its newest run), or a run's number")
      ->required()
      ->type_name("");
  app.add_option("B", flags->b, "The same: two sweeps, or two rows or runs")->required()->type_name("");
  app.add_option("--metric", flags->metrics, "Compare this metric alone; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_choice(app, "--test", flags->test, {"welch", "paired", "permutation"},
             "Test of the difference [as the sweep's file says, welch]");
  app.add_flag("--curves", flags->curves, "Also the mean curves themselves; of two sweeps those of each row");
  app.add_option("--first", flags->first, "Of two sweeps: begin with this row, counted from 0 [0]")
      ->type_name("N");
  add_source(app, context);
  return [&context, flags]() -> int {
    CompareRequest request;
    request.set_a(target_of(flags->a));
    request.set_b(target_of(flags->b));
    request.set_test(flags->test);
    for (const auto& metric : flags->metrics) request.add_metrics(metric);
    request.set_first(flags->first);
    if (flags->curves) request.set_max_points(context.json ? kPointsInJson : kPointsOfACurve);
    const auto compared = open_source(context)->compare(request);
    if (context.json)
      context.print_json(compared);
    else
      context.out.write(text_of(shown(compared, context.out), flags->curves, context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kCompareCommand{
    .place = 157,
    .name = "compare",
    .summary = "Hold two sweeps, rows or runs side by side: settings, metrics with tests, curves",
    .example =
        "ablate compare msf-sharing/orig msf-sharing/r\nablate compare 12 17 --curves\n"
        "ablate compare msf-sharing msf-sharing-v2 --json",
    .declare = declare_compare,
};

}  // namespace abl::cli
