// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/words.h"
#include "printing/grid.h"

namespace abl::cli {
namespace {

/// Why it is not known of some when they will be complete.
std::string unknown_text(const ablate::v1::ListSweepsResponse& list) {
  constexpr int kMost = 5;
  std::string text;
  int unknown = 0;
  for (const auto& sweep : list.sweeps())
    if (const auto& trials = sweep.trials(); !sweep.forecast().unknown().empty() &&
                                             trials.leased() + trials.running() + trials.completed() > 0 &&
                                             ++unknown <= kMost)
      text += fmt::format("{}: ETA unknown: {}\n", sweep.name(), sweep.forecast().unknown());
  if (unknown > kMost) text += fmt::format("ETA unknown of {} more\n", unknown - kMost);
  return text.empty() ? text : "\n" + text;
}

/// What of some is held because it fails.
std::string holds_text(const ablate::v1::ListSweepsResponse& list) {
  constexpr int kMost = 10;
  std::string text;
  int lines = 0;
  for (const auto& sweep : list.sweeps())
    for (const std::string& line : holds_of(sweep))
      if (++lines <= kMost) text += fmt::format("{}: {}\n", sweep.name(), line);
  if (lines > kMost) text += fmt::format("and {} more held levels\n", lines - kMost);
  return text.empty() ? text : "\n" + text;
}

/// How far the tuning of rows is, while it goes on.
std::string tuning_lines(const ablate::v1::ListSweepsResponse& list) {
  std::string text;
  for (const auto& sweep : list.sweeps()) {
    if (!is_finished(sweep.state()) && sweep.tuning().open() > 0)
      text += fmt::format("{}: {}\n", sweep.name(), tuning_text(sweep));
    if (!is_finished(sweep.state()) && !sweep.tunes().empty())
      text += fmt::format("{}: trials of the points of {}\n", sweep.name(), sweep.tunes());
  }
  return text.empty() ? text : "\n" + text;
}

std::string list_text(const ablate::v1::ListSweepsResponse& list, const Terminal& terminal) {
  if (list.sweeps().empty()) return "no sweeps yet: submit one with 'ablate submit FILE'\n";
  const bool lacks =
      std::ranges::any_of(list.sweeps(), [](const auto& sweep) { return sweep.trials().unfilled() > 0; });
  std::vector<printing::Grid::Column> columns{{"sweep"},     {"state"},          {"trials", true},
                                              {"progress"},  {"running", true},  {"failed", true},
                                              {"ETA", true}, {"submitted", true}};
  if (lacks) columns.insert(columns.begin() + 6, printing::Grid::Column{"missing", true});
  const bool marked = std::ranges::any_of(
      list.sweeps(), [](const auto& sweep) { return sweep.pinned() || !sweep.tags().empty(); });
  if (marked) columns.emplace_back("tags");
  printing::Grid grid{columns};
  const Time now = SystemClock{}.now();
  for (const auto& sweep : list.sweeps()) {
    const auto& trials = sweep.trials();
    const auto filled = trials.completed() - trials.unfilled();
    const double done = trials.total() ? static_cast<double>(filled) / trials.total() : 0;
    const bool has_eta = sweep.forecast().has_seconds();
    std::vector<std::string> cells{
        sweep.name(),
        painted(sweep.state(), terminal),
        fmt::format("{}/{}", filled, trials.total()),
        bar(done, 10),
        fmt::format("{}", trials.running()) +
            (trials.leased() ? fmt::format(", {} assigned", trials.leased()) : ""),
        fmt::format("{}", trials.failed()) + (trials.held() ? fmt::format(", {} held", trials.held()) : ""),
        is_finished(sweep.state()) ? ""
        : has_eta                  ? format_forecast(sweep.forecast(), now)
                                   : format_eta(std::nullopt),
        format_age(sweep.created(), now)};
    if (lacks) cells.insert(cells.begin() + 6, fmt::format("{}", trials.unfilled()));
    if (marked)
      cells.push_back(fmt::format("{}{}{}", sweep.pinned() ? "pinned" : "",
                                  sweep.pinned() && !sweep.tags().empty() ? "; " : "",
                                  fmt::join(sweep.tags(), ", ")));
    grid.add(std::move(cells));
  }
  return grid.text(&terminal) + tuning_lines(list) + unknown_text(list) + holds_text(list);
}

/// Throws: Error{kNotFound} for a name that is not in the list.
void keep_named(ablate::v1::ListSweepsResponse& list, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const auto& sweep : list.sweeps()) known.push_back(sweep.name());
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      throw Error{Code::kNotFound, fmt::format("unknown sweep '{}'{}", name, did_you_mean(name, known))};
  auto& sweeps = *list.mutable_sweeps();
  const auto others = std::remove_if(sweeps.begin(), sweeps.end(), [&](const auto& sweep) {
    return std::ranges::find(names, sweep.name()) == names.end();
  });
  sweeps.erase(others, sweeps.end());
}

bool all_completed(const ablate::v1::ListSweepsResponse& list) {
  return std::ranges::all_of(
      list.sweeps(), [](const auto& sweep) { return sweep.state() == ablate::v1::SWEEP_STATE_COMPLETED; });
}

struct LsFlags {
  std::vector<std::string> sweeps, tags;
  bool names = false, exit_code = false, archived = false;
};

/// Keeps what is asked for, pinned sweeps first; those that are named are there in any case.
/// Returns: how many archived sweeps were left out.
int choose(ablate::v1::ListSweepsResponse& list, const LsFlags& flags) {
  if (!flags.sweeps.empty()) keep_named(list, flags.sweeps);
  auto& sweeps = *list.mutable_sweeps();
  const auto keep = [&sweeps](auto is_wanted) {
    const int before = sweeps.size();
    sweeps.erase(
        std::remove_if(sweeps.begin(), sweeps.end(), [&](const auto& sweep) { return !is_wanted(sweep); }),
        sweeps.end());
    return before - sweeps.size();
  };
  for (const std::string& tag : flags.tags)
    keep([&](const auto& sweep) { return std::ranges::find(sweep.tags(), tag) != sweep.tags().end(); });
  int away = 0;
  if (flags.archived)
    keep([](const auto& sweep) { return sweep.archived(); });
  else if (flags.sweeps.empty())
    away = keep([](const auto& sweep) { return !sweep.archived(); });
  std::stable_partition(sweeps.begin(), sweeps.end(), [](const auto& sweep) { return sweep.pinned(); });
  return away;
}

Run declare_ls(CLI::App& app, Context& context) {
  auto flags = std::make_shared<LsFlags>();
  app.add_option("SWEEP", flags->sweeps, "List only these sweeps")->type_name("");
  app.add_option("--tag", flags->tags, "List only sweeps with this tag; of several, with all of them")
      ->type_name("TAG")
      ->allow_extra_args(false);
  app.add_flag("--archived", flags->archived, "List archived sweeps instead of the others");
  app.add_flag("--names", flags->names, "Print names only, one per line");
  app.add_flag("--exit-code", flags->exit_code, "Exit with 1 unless every listed sweep has all its values");
  add_source(app, context);
  return [&context, flags]() -> int {
    auto list = open_source(context)->list_sweeps();
    const bool is_empty = list.sweeps().empty();
    const int away = choose(list, *flags);
    if (context.json) {
      context.print_json(list);
    } else if (flags->names) {
      for (const auto& sweep : list.sweeps()) context.out.line(sweep.name());
    } else if (list.sweeps().empty() && !is_empty) {
      context.out.line(away > 0 ? "every sweep is archived" : "no sweep matches");
    } else {
      context.out.write(list_text(shown(list, context.out), context.out));
    }
    if (away > 0)
      context.note(fmt::format("{} not listed: ablate ls --archived",
                               plural(static_cast<std::uint64_t>(away), "archived sweep")));
    return flags->exit_code && !all_completed(list) ? kExitFailed : kExitOk;
  };
}

}  // namespace

extern const Command kLsCommand{
    .place = 60,
    .name = "ls",
    .summary = "List sweeps",
    .example = "ablate ls\nablate ls --store results.db --json\nablate ls msf-sharing --exit-code",
    .failure = "with --exit-code: a listed sweep has not completed, or lacks a value",
    .declare = declare_ls,
};

}  // namespace abl::cli
