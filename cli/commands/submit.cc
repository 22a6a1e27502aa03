// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cli/budget.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/dashboard_link.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/sweep_checks.h"
#include "cli/watch.h"
#include "cli/watch_screen.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;

struct SubmitFlags {
  std::string file, scale;
  std::optional<int> priority, max_running;
  std::optional<double> weight;
  std::string owner;
  std::vector<std::string> tags;
  bool watch = false, preempt = false, no_breaker = false, no_provenance = false;
  BudgetFlags budget;
};

/// As the scheduler takes it.
CLI::Validator weight() {
  const auto check = [](const std::string& given) {
    double value = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool right =
        error == std::errc{} && end == given.data() + given.size() && value > 0 && value <= 1e6;
    return right ? std::string{} : fmt::format("'{}' is not a number above 0, at most 1000000", given);
  };
  return CLI::Validator{check, "", ""};
}

/// What the flags made of a sweep that was there already: ", at priority 0, with at most 2 trials at once".
std::string standing_text(const SweepSummary& sweep, const SubmitFlags& flags) {
  std::string text = fmt::format(", at priority {}", sweep.priority());
  if (flags.weight) text += fmt::format(", of weight {}", sweep.weight());
  if (flags.max_running)
    text += sweep.max_running() == 0
                ? ", with no limit of trials at once"
                : fmt::format(", with at most {} at once", plural(sweep.max_running(), "trial"));
  if (flags.budget.given()) text += sweep.has_budget() ? ", " + budget_text(sweep) : ", without a budget";
  return text;
}

std::string said(const SubmitResponse& response, const SubmitFlags& flags) {
  const auto& sweep = response.sweep();
  if (!response.created()) {
    const std::string there = fmt::format("{} is there already, with the same content", sweep.name());
    if (sweep.state() == SWEEP_STATE_CANCELLED)
      return fmt::format("{}, and it is cancelled: run it again with 'ablate retry {}'", there, sweep.name());
    if (sweep.state() == SWEEP_STATE_PAUSED)
      return fmt::format("{}, paused: run 'ablate resume {}' to continue", there, sweep.name());
    const std::string standing = there + standing_text(sweep, flags);
    if (sweep.trials().held() == 0) return standing;
    std::string text = fmt::format("{}; {} held: run what is held with 'ablate retry {} --held'", standing,
                                   plural(sweep.trials().held(), "trial"), sweep.name());
    for (const std::string& hold : sweep.holds()) text += "\nheld: " + hold;
    return text;
  }
  const bool tunes = sweep.has_tuning();
  const auto total = sweep.trials().total() + (tunes ? sweep.tuning().trials().total() : 0);
  std::string text = fmt::format(
      "{} submitted: {}, {} new", sweep.name(),
      plural(total, tunes && sweep.trials().total() == 0 ? "tuning trial" : "trial"), response.new_trials());
  if (response.shared_trials())
    text += fmt::format(", {} shared with other sweeps", response.shared_trials());
  if (tunes && sweep.tuning().open() > 0 && sweep.seeds() > 0)
    text += "; the trials of a row follow when its best values are known";
  return text;
}

/// What the scheduler says of the sweep's waiting trials, once it has looked at them; nothing where they run,
/// or are so many that to ask would be a burden.
std::vector<std::string> why_it_waits(Client& client, const SweepSummary& sweep, const Terminal& terminal) {
  constexpr std::uint32_t kMostTrials = 2000;  // of one answer
  if (sweep.trials().total() > kMostTrials) return {};
  SweepRequest request;
  request.set_sweep(sweep.trials().total() == 0 && sweep.has_tuning() ? sweep.tuning().sweep()
                                                                      : sweep.name());
  for (int look = 0; look < 10; ++look) {
    if (look > 0) std::this_thread::sleep_for(100ms);  // it looks twice a second
    const auto detail = shown(client.call(&Sweeps::Stub::GetSweep, request, 10s), terminal);
    std::map<std::string, std::uint32_t> reasons;
    for (const TrialSummary& trial : detail.trials())
      if (trial.state() == TRIAL_STATE_QUEUED && !trial.reason().empty()) ++reasons[trial.reason()];
    SweepProgress progress;
    for (const auto& [reason, trials] : reasons) {
      Waiting& waiting = *progress.add_waiting();
      waiting.set_reason(reason);
      waiting.set_trials(trials);
    }
    WatchScreen screen;
    screen.update(progress);
    auto lines = screen.waiting();
    if (!lines.empty() || detail.summary().trials().queued() == 0) return lines;
  }
  return {};
}

Run declare_submit(CLI::App& app, Context& context) {
  auto flags = std::make_shared<SubmitFlags>();
  app.add_option("FILE", flags->file, "Sweep file, or a table of a paper: msf/table-1")
      ->required()
      ->type_name("");
  add_scale(app, flags->scale);
  app.add_option("--priority", flags->priority, "Higher runs first [0]")
      ->check(whole_number(-1000, 1000))
      ->type_name("N");
  app.add_option("--owner", flags->owner, "Whose share of the slots it uses [$USER]")->type_name("NAME");
  app.add_option("--tag", flags->tags, "Tag the sweep (repeatable); 'ablate annotate' changes tags later")
      ->type_name("TAG")
      ->allow_extra_args(false);
  app.add_option("--weight", flags->weight, "Of its owner's slots, twice as many with 2 as with 1 [1]")
      ->check(weight())
      ->type_name("N");
  app.add_option("--max-running", flags->max_running, "Trials under way at once; 0: no limit [0]")
      ->check(whole_number(0, 1'000'000))
      ->type_name("N");
  app.add_flag("--preempt", flags->preempt,
               "Runs of lower priority checkpoint and give way while its trials find no slot");
  app.add_flag("--no-breaker", flags->no_breaker,
               "Hold nothing back, however many of its trials fail, and let all start at once");
  add_budget(app, flags->budget);
  app.add_flag("--no-provenance", flags->no_provenance,
               "Record nothing of its folder: no git commit and diff, no Python packages");
  app.add_flag("--watch", flags->watch, "Follow the sweep until it is finished");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    SubmitRequest request;
    *request.mutable_file() = read_sweep_file(flags->file, flags->scale);
    if (flags->priority) request.set_priority(*flags->priority);
    request.set_owner(flags->owner.empty() ? user_name() : flags->owner);
    for (const std::string& tag : flags->tags) request.add_tags(tag);
    if (flags->weight) request.set_weight(*flags->weight);
    if (flags->no_breaker) request.set_breaker(false);
    if (flags->budget.given()) *request.mutable_budget() = flags->budget.message(SystemClock{}.now());
    if (flags->no_provenance) request.mutable_provenance();  // which says nothing
    if (flags->preempt) request.set_preempt(true);
    if (flags->max_running) request.set_max_running(static_cast<std::uint32_t>(*flags->max_running));
    const auto response = submit(context, request);
    if (context.json)
      context.print_json(response);
    else
      context.out.line(said(shown(response, context.out), *flags));
    if (!response.created() && !flags->owner.empty() && flags->owner != response.sweep().owner())
      context.note(fmt::format("{} stays with its owner {}: --owner counts when a sweep is first submitted",
                               response.sweep().name(), response.sweep().owner()));
    if (!context.json)
      for (const auto& note : response.notes()) context.note(note);
    if (flags->watch) return watch(context, response.sweep().name());
    if (context.json) return kExitOk;
    Client client{context};
    for (const auto& line : why_it_waits(client, response.sweep(), context.out)) context.out.line(line);
    if (response.sweep().state() != SWEEP_STATE_CANCELLED && response.sweep().state() != SWEEP_STATE_HELD)
      context.out.line(fmt::format("follow it with: ablate watch {}", response.sweep().name()));
    print_dashboard_link(context, client, response.sweep().name());
    return kExitOk;
  };
}

}  // namespace

extern const Command kSubmitCommand{
    .place = 50,
    .name = "submit",
    .summary = "Submit a sweep; resubmitting the same file changes nothing",
    .example = "ablate submit sweep.yaml --watch",
    .success = "it is stored; with --watch: it completed",
    .failure = "with --watch: it failed or was cancelled",
    .declare = declare_submit,
};

}  // namespace abl::cli
