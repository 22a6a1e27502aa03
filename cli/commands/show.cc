// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "cli/budget.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/line_difference.h"
#include "cli/provenance.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/words.h"
#include "printing/grid.h"
#include "printing/row_names.h"
#include "views/json.h"

namespace abl::cli {
namespace {

std::string step_text(const ablate::v1::TrialSummary& trial) {
  if (trial.total_steps() == 0) return trial.step() ? fmt::format("{}", trial.step()) : "";
  return fmt::format("{}/{}", trial.step(), trial.total_steps());
}

/// Why a trial waits, failed, or has results that are not what they seem.
std::string why_text(const ablate::v1::TrialSummary& trial) {
  std::vector<std::string> reasons;
  if (!trial.reason().empty()) reasons.push_back(trial.reason().substr(0, trial.reason().find('\n')));
  if (trial.state() == ablate::v1::TRIAL_STATE_FAILED &&
      trial.failure() > ablate::v1::FAILURE_CLASS_UNSPECIFIED &&
      trial.failure() != ablate::v1::FAILURE_CLASS_TRIAL && !reasons.empty())
    reasons.back() += fmt::format(" ({})", word(trial.failure()));  // not its own
  if (trial.unfilled()) reasons.emplace_back("missing: it did not report a metric of the table");
  if (trial.refused_lines() > 0)
    reasons.push_back(fmt::format("{} refused, such as {}", plural(trial.refused_lines(), "metric report"),
                                  trial.refused_example()));
  if (trial.repeated_points() > 0)
    reasons.push_back(
        fmt::format("{} repeating an earlier step with a different value; the first value was kept",
                    plural(trial.repeated_points(), "point")));
  if (!trial.before_mend().empty()) reasons.push_back("made before a correction: " + trial.before_mend());
  return fmt::format("{}", fmt::join(reasons, "; "));
}

/// Where the table cuts them: each reason once and whole, with its rows and seeds.
std::string reasons_text(const ablate::v1::SweepDetail& sweep) {
  constexpr std::size_t kNamed = 20;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // in the order of the table
  std::unordered_map<std::string, std::size_t> places;                    // of reasons among these
  for (const auto& trial : sweep.trials()) {
    const std::string why = why_text(trial);
    if (why.empty()) continue;
    const auto [place, fresh] = places.try_emplace(why, reasons.size());
    if (fresh) reasons.emplace_back(why, std::vector<std::string>{});
    reasons[place->second].second.push_back(fmt::format("{}/{}", trial.row(), trial.seed()));
  }
  std::string text;
  for (const auto& [why, trials] : reasons) {
    const std::size_t named = std::min(trials.size(), kNamed);
    text += fmt::format("{}: {}{}\n", why,
                        fmt::join(trials.begin(), trials.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                        trials.size() > named ? fmt::format(" and {} more", trials.size() - named) : "");
  }
  return text.empty() ? text : "\n" + text;
}

constexpr int kLeastOfANote = 16, kLeastOfAnId = 6;
enum Rank { kWorker = 1, kStep, kAttempt };  // what a narrow terminal leaves out, the last of these first

/// `ids`: of the rows, where a terminal may cut them.
printing::Grid empty_grid(const std::vector<std::string>& ids = {}) {
  return printing::Grid{{{.heading = "row", .least = printing::least_of_names(ids, kLeastOfAnId)},
                         {"seed", true},
                         {"state"},
                         {"run", true},
                         {.heading = "attempt", .right_aligned = true, .rank = kAttempt},
                         {.heading = "worker", .rank = kWorker},
                         {.heading = "step", .right_aligned = true, .rank = kStep},
                         {.heading = "why", .least = kLeastOfANote}}};
}

void add_trials(printing::Grid& grid, const ablate::v1::SweepDetail& sweep, const Terminal& terminal) {
  for (const auto& trial : sweep.trials())
    grid.add({trial.row(), fmt::format("{}", trial.seed()), painted(trial.state(), terminal),
              trial.run() ? fmt::format("{}", trial.run()) : "",
              trial.attempt() ? fmt::format("{}", trial.attempt()) : "", trial.worker(), step_text(trial),
              why_text(trial)});
}

/// What the sweep was before, and why its rows have the seeds that they have.
std::string growth_text(const ablate::v1::SweepDetail& sweep, Time now) {
  constexpr int kFormerShown = 10;
  std::string text;
  for (const auto& revision : sweep.revisions()) {
    if (revision.revision() == 1) continue;
    text += fmt::format("revision {}, {}{}: {}; {}\n", revision.revision(), format_age(revision.time(), now),
                        revision.by().empty() ? "" : " by " + revision.by(),
                        fmt::join(revision.changes(), "; "), plural(revision.new_trials(), "new trial"));
  }
  for (int i = 0; i < std::min(kFormerShown, sweep.former_size()); ++i) {
    const auto& former = sweep.former(i);
    text += fmt::format("before revision {}: {}/{}, {}{}: {}\n", former.revision(), former.row(),
                        former.seed(), word(former.state()),
                        former.run() ? fmt::format(", run {}", former.run()) : "", former.why());
  }
  if (const int more = sweep.former_size() - kFormerShown; more > 0)
    text += fmt::format("and {} that the table had before: --json lists them\n",
                        plural(static_cast<std::uint32_t>(more), "more trial"));
  if (!sweep.has_seeding()) return text;
  const auto open = std::ranges::count_if(sweep.seeding().rows(), [](const auto& row) { return row.open(); });
  text += fmt::format("seeds: {} to {} a row, until {}{}\n", sweep.seeding().min(), sweep.seeding().max(),
                      sweep.seeding().until(),
                      open == 0 || !sweep.summary().has_forecast()
                          ? ""
                          : fmt::format("; {} may get more than the time above is of",
                                        plural(static_cast<std::uint64_t>(open), "row")));
  for (const auto& row : sweep.seeding().rows())
    text += fmt::format("  {}: {}{}: {}\n", row.row(), plural(row.seeds(), "seed"),
                        row.open() ? "" : ", no more", row.why());
  return text;
}

std::string head_text(const ablate::v1::SweepDetail& sweep, const Terminal& terminal) {
  const auto& summary = sweep.summary();
  const Time now = SystemClock{}.now();
  std::string holds;
  for (const std::string& line : holds_of(summary)) holds += terminal.paint(Style::kYellow, line) + "\n";
  if (!summary.spent().empty())
    holds += terminal.paint(Style::kYellow,
                            fmt::format("{}; it goes on with: ablate resume {} --max-gpu-hours N, or --until",
                                        summary.spent(), summary.name())) +
             "\n";
  else if (summary.has_budget())
    holds += "budget: " + budget_text(summary) + "\n";
  if (summary.has_tuning())
    holds +=
        fmt::format("{}; 'ablate table {}' has its points\n", tuning_text(summary), summary.tuning().sweep());
  if (!summary.tags().empty() || summary.archived())
    holds += fmt::format("{}{}{}\n", summary.tags().empty() ? "" : "tags: ", fmt::join(summary.tags(), ", "),
                         !summary.archived()      ? ""
                         : summary.tags().empty() ? "archived"
                                                  : "; archived");
  if (!summary.tunes().empty()) holds += fmt::format("trials of the points of {}\n", summary.tunes());
  if (!sweep.notes().empty())
    holds += fmt::format("\n{}{}\n", sweep.notes(), sweep.notes().ends_with('\n') ? "" : "\n");
  holds += growth_text(sweep, now);
  return fmt::format("{}\n{}, priority {}, submitted {} from {}\n{}{}\n", summary_text(summary, terminal),
                     summary.seeds() == 0 ? "a search"
                                          : fmt::format("{} × {}", plural(summary.rows(), "row"),
                                                        seeds_text(summary.seeds(), summary.seeds_min())),
                     summary.priority(), format_age(summary.created(), now), sweep.file(),
                     summary.has_forecast() ? forecast_line(summary.forecast(), "complete in", now) : "",
                     holds);
}

/// What fits a terminal, of the first rows where there are many.
std::string terminal_text(const ablate::v1::SweepDetail& sweep, const Terminal& terminal) {
  std::vector<std::string> ids;
  for (const auto& trial : sweep.trials()) ids.push_back(trial.row());
  printing::Grid grid = empty_grid(ids);
  add_trials(grid, sweep, terminal);
  const bool cut = terminal.width() > 0 && std::ranges::any_of(grid.lines(), [&](const std::string& line) {
                     return display_width(line) > terminal.width();
                   });
  std::vector<std::string> left_out;
  for (const auto& column : grid.fit_to(terminal.width())) left_out.push_back(column.heading);
  std::string text = head_text(sweep, terminal) + grid.text(&terminal);
  if (!left_out.empty())
    text +=
        fmt::format("\nno room for: {} (a wider terminal, or --json, has them)\n", fmt::join(left_out, ", "));
  if (cut) text += reasons_text(sweep);
  if (sweep.left_out() > 0)
    text += fmt::format("\n{} not shown: 'ablate show {} | less', or --json, has all\n",
                        plural(sweep.left_out(), "more trial"), sweep.summary().name());
  return text;
}

/// Everything, page by page: a sweep may have 100,000 trials.
void write_text(const Context& context, Source& source, const std::string& name) {
  printing::Grid grid = empty_grid();
  for (std::optional<std::uint32_t> first = 0; first;) {
    const auto page = source.rows(name, *first);
    if (*first == 0) context.out.write(head_text(page, context.out));
    add_trials(grid, page, context.out);
    context.out.write(grid.take_text(&context.out));
    first = page.next() == 0 ? std::nullopt : std::optional{page.next()};
  }
}

/// One SweepDetail with all trials, which is never there as a whole but where people read it.
void write_json(const Context& context, Source& source, const std::string& name) {
  if (context.out.interactive()) return context.print_json(source.sweep(name));
  auto page = source.rows(name, 0);
  auto head = page;
  head.clear_trials();
  head.clear_next();
  head.clear_left_out();
  const std::string text = views::to_json(head), list = R"("trials":[)";
  const std::size_t place = text.find(list + "]") + list.size();  // in a text the quotes would be escaped
  std::string piece = text.substr(0, place);
  for (bool is_first = true;; page = source.rows(name, page.next())) {
    for (const auto& trial : page.trials())
      piece += (std::exchange(is_first, false) ? "" : ",") + views::to_json(trial);
    context.out.write(std::exchange(piece, {}));
    if (page.next() == 0) break;
  }
  context.out.write(text.substr(place) + "\n");
}

/// The first trials. A row has as many as there are seeds: not all of its, perhaps.
ablate::v1::SweepDetail first_trials(Source& source, const std::string& name) {
  constexpr int kMostOnATerminal = 200;
  auto sweep = source.rows(name, 0, kMostOnATerminal);
  if (const int more = sweep.trials_size() - kMostOnATerminal; more > 0) {
    sweep.mutable_trials()->DeleteSubrange(kMostOnATerminal, more);
    sweep.set_left_out(sweep.left_out() + static_cast<std::uint32_t>(more));
  }
  return sweep;
}

/// "1..3", "1.." up to the newest: which revisions are compared; 0: the newest.
/// Throws: Error{kInvalidArgument} for another text.
std::pair<std::uint32_t, std::uint32_t> revisions_of(const std::string& range) {
  const auto wrong = [&] {
    return Error{
        Code::kInvalidArgument,
        fmt::format("--diff: invalid revisions '{}'; expected A..B, such as 1..3, or A.. up to the newest",
                    range)};
  };
  const std::size_t dots = range.find("..");
  if (dots == std::string::npos) throw wrong();
  const auto number = [&](std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value == 0) throw wrong();
    return value;
  };
  const std::string_view to = std::string_view{range}.substr(dots + 2);
  return {number(std::string_view{range}.substr(0, dots)), to.empty() ? 0 : number(to)};
}

/// As a unified diff, which `patch` takes.
std::string difference_text(const ablate::v1::SweepDifference& difference, const Terminal& terminal) {
  const auto name = [](const ablate::v1::SweepRevision& revision) {
    return fmt::format("{}\trevision {}", revision.file(), revision.revision());
  };
  if (difference.hunks().empty()) return "";
  const auto range = [](std::uint32_t line, std::uint32_t lines) {
    return lines == 1 ? fmt::format("{}", line) : fmt::format("{},{}", line, lines);
  };
  std::string text = terminal.paint(Style::kBold, "--- " + name(difference.before())) + "\n" +
                     terminal.paint(Style::kBold, "+++ " + name(difference.after())) + "\n";
  for (const auto& hunk : difference.hunks()) {
    text += terminal.paint(Style::kCyan,
                           fmt::format("@@ -{} +{} @@", range(hunk.before_line(), hunk.before_lines()),
                                       range(hunk.after_line(), hunk.after_lines()))) +
            "\n";
    for (const std::string& line : hunk.lines())
      text += (line.starts_with('+')   ? terminal.paint(Style::kGreen, line)
               : line.starts_with('-') ? terminal.paint(Style::kRed, line)
                                       : line) +
              "\n";
  }
  return text;
}

void write_difference(const Context& context, Source& source, const std::string& name,
                      const std::string& range) {
  const auto [from, to] = revisions_of(range);
  const auto before = source.sweep_text(name, from), after = source.sweep_text(name, to);
  auto difference = line_difference(before.text(), after.text());
  difference.set_sweep(before.sweep());
  *difference.mutable_before() = before.revision();
  *difference.mutable_after() = after.revision();
  if (context.json) return context.print_json(difference);
  if (difference.hunks().empty())
    return context.note(fmt::format("the files of revisions {} and {} are the same",
                                    before.revision().revision(), after.revision().revision()));
  context.out.write(difference_text(shown(difference, context.out), context.out));
}

void print_file(const Context& context, Source& source, const std::string& name, std::uint32_t revision) {
  const auto file = source.sweep_text(name, revision);
  if (context.json) return context.print_json(file);
  const std::string text = shown(file.text(), context.out);  // to the byte, where nobody looks at it
  context.out.write(context.out.interactive() && !text.ends_with('\n') ? text + "\n" : text);
}

Run declare_show(CLI::App& app, Context& context) {
  struct Flags {
    std::string sweep, difference;
    bool provenance = false, file = false;
    std::uint32_t revision = 0;
  };
  auto flags = std::make_shared<Flags>();
  add_sweep(app, flags->sweep);
  auto* provenance =
      app.add_flag("--provenance", flags->provenance,
                   "Show instead where it comes from: git commit and diff of its folder, packages");
  auto* file =
      app.add_flag("--file", flags->file, "Print instead its file, to the byte")->excludes(provenance);
  app.add_option("--revision", flags->revision,
                 "With --file: as it was in this revision, from 1 [the newest]")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()))
      ->type_name("N")
      ->needs(file);
  app.add_option(
         "--diff", flags->difference,
         "Show instead what differs between the files of two of its revisions: 1..3, or 1.. up to the "
         "newest")
      ->type_name("A..B")
      ->excludes(provenance)
      ->excludes(file);
  add_source(app, context);
  return [&context, flags]() -> int {
    if (!flags->difference.empty()) revisions_of(flags->difference);  // before anybody is asked
    const auto source = open_source(context);
    if (flags->provenance) {
      const auto from = source->provenance(flags->sweep);
      if (context.json)
        context.print_json(from);
      else
        context.out.write(provenance_text(shown(from, context.out), true));
    } else if (flags->file)
      print_file(context, *source, flags->sweep, flags->revision);
    else if (!flags->difference.empty())
      write_difference(context, *source, flags->sweep, flags->difference);
    else if (context.json)
      write_json(context, *source, flags->sweep);
    else if (context.out.interactive())
      context.out.write(terminal_text(shown(first_trials(*source, flags->sweep), context.out), context.out));
    else
      write_text(context, *source, flags->sweep);
    return kExitOk;
  };
}

}  // namespace

extern const Command kShowCommand{
    .place = 70,
    .name = "show",
    .summary = "Show a sweep and its trials, on a terminal the first of many",
    .example =
        "ablate show msf-sharing\nablate show msf-sharing --provenance\nablate show msf-sharing --diff 1..",
    .declare = declare_show,
};

}  // namespace abl::cli
