// SPDX-License-Identifier: Apache-2.0
#include "cli/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace abl::cli {
namespace {

using namespace ablate::v1;

std::string lower_without(std::string name, std::string_view prefix) {
  name.erase(0, name.starts_with(prefix) ? prefix.size() : 0);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string paint(std::optional<Style> style, const std::string& text, const Terminal& terminal) {
  return style ? terminal.paint(*style, text) : text;
}

}  // namespace

std::string word(SweepState state) { return lower_without(SweepState_Name(state), "SWEEP_STATE_"); }
std::string word(RunState state) { return lower_without(RunState_Name(state), "RUN_STATE_"); }
std::string word(ablate::v1::FailureClass failure) {
  return lower_without(FailureClass_Name(failure), "FAILURE_CLASS_");
}
std::string role_text(ablate::v1::TokenRole role) {
  return lower_without(ablate::v1::TokenRole_Name(role), "TOKEN_ROLE_");
}
std::string word(TrialState state) { return lower_without(TrialState_Name(state), "TRIAL_STATE_"); }

std::string painted(SweepState state, const Terminal& terminal) {
  std::optional<Style> style;
  if (state == SWEEP_STATE_ACTIVE) style = Style::kCyan;
  if (state == SWEEP_STATE_PAUSED || state == SWEEP_STATE_HELD) style = Style::kYellow;
  if (state == SWEEP_STATE_COMPLETED) style = Style::kGreen;
  if (state == SWEEP_STATE_FAILED || state == SWEEP_STATE_INCOMPLETE) style = Style::kRed;
  if (state == SWEEP_STATE_CANCELLED) style = Style::kDim;
  return paint(style, word(state), terminal);
}

std::string painted(TrialState state, const Terminal& terminal) {
  std::optional<Style> style;
  if (state == TRIAL_STATE_LEASED || state == TRIAL_STATE_RUNNING) style = Style::kCyan;
  if (state == TRIAL_STATE_COMPLETED) style = Style::kGreen;
  if (state == TRIAL_STATE_FAILED) style = Style::kRed;
  if (state == TRIAL_STATE_HELD) style = Style::kYellow;
  if (state == TRIAL_STATE_CANCELLED) style = Style::kDim;
  return paint(style, word(state), terminal);
}

std::string counts_text(const TrialCounts& counts) {
  std::string text = fmt::format("{}/{} trials", counts.completed() - counts.unfilled(), counts.total());
  if (counts.running() > 0) text += fmt::format(", {} running", counts.running());
  if (counts.leased() > 0) text += fmt::format(", {} assigned", counts.leased());
  if (counts.failed()) text += fmt::format(", {} failed", counts.failed());
  if (counts.held()) text += fmt::format(", {} held", counts.held());
  if (counts.unfilled()) text += fmt::format(", {} missing a metric", counts.unfilled());
  if (counts.cancelled()) text += fmt::format(", {} cancelled", counts.cancelled());
  return text;
}

std::string tuning_text(const SweepSummary& sweep) {
  if (!sweep.tuning().rows()) return {};
  const auto& tuning = sweep.tuning();
  const auto& trials = tuning.trials();
  const auto decided = tuning.rows() - tuning.open() - tuning.failed();
  std::string text = fmt::format("tuning: {} of {}", trials.completed() + trials.failed(), trials.total());
  if (trials.failed() > 0) text += fmt::format(" ({} failed)", trials.failed());
  if (trials.held() > 0) text += fmt::format(" ({} held)", trials.held());
  if (sweep.seeds() == 0)  // a search: its points are all there is
    return "search" + text.substr(std::string_view{"tuning"}.size()) + " trials of its points";
  text += fmt::format(", {} of {} rows tuned", decided, tuning.rows());
  if (tuning.failed() > 0) text += fmt::format(", {} cannot be tuned", tuning.failed());
  return text;
}

std::string summary_text(const SweepSummary& sweep, const Terminal& terminal) {
  const std::string tuning = tuning_text(sweep);
  const std::string own = sweep.seeds() == 0 && !tuning.empty() ? "" : counts_text(sweep.trials());
  return fmt::format("{}: {}, {}{}{}{}", terminal.paint(Style::kBold, sweep.name()),
                     painted(sweep.state(), terminal), own, own.empty() || tuning.empty() ? "" : "; ", tuning,
                     sweep.spent().empty() ? "" : ", budget spent");
}

std::vector<std::string> holds_of(const SweepSummary& sweep) {
  std::vector<std::string> lines;
  for (const std::string& held : sweep.holds())
    lines.push_back(fmt::format("held: {} ('ablate retry {} --held' runs the others)", held, sweep.name()));
  return lines;
}

bool is_finished(SweepState state) {
  return state == SWEEP_STATE_COMPLETED || state == SWEEP_STATE_INCOMPLETE || state == SWEEP_STATE_FAILED ||
         state == SWEEP_STATE_HELD || state == SWEEP_STATE_CANCELLED;
}

}  // namespace abl::cli
