// SPDX-License-Identifier: Apache-2.0
#include "views/forecast.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "views/convert.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::LeftOfRow;
using storage::Measured;
using storage::RunningTrial;
using storage::StoredDemand;
using storage::WorkerRecord;

constexpr std::uint32_t kSweepsThatCompete = 500;
/// Trials that are looked at: of one sweep, of all that are asked for, and of all others.
constexpr std::uint32_t kTrialsOfOne = 1000, kTrialsOfAsked = 4000, kTrialsOfOthers = 1000;
/// A row of which no trial has run takes the mean of the others, where there are so many.
constexpr int kEnoughRows = 8;

bool has(const std::string& list, const std::string& name) {
  const auto names = nlohmann::json::parse(list, nullptr, false);
  return names.is_array() && std::ranges::find(names, nlohmann::json(name)) != names.end();
}

/// Slots that a trial of so many GPUs may use.
double usable_slots(const WorkerRecord& worker, int gpus) {
  const auto slots = nlohmann::json::parse(worker.slots_json, nullptr, false);
  if (!slots.is_array()) return 0;
  return static_cast<double>(std::ranges::count_if(slots, [&](const auto& slot) {
    return gpus == 0 || slot.value("device", std::string{}).starts_with("cuda");
  }));
}

bool may_take(const StoredDemand& demand, const WorkerRecord& worker) {
  if (demand.command ? !worker.allows_commands : worker.result_version < std::max(demand.result_version, 1))
    return false;
  if (!demand.data.empty() && !has(worker.data_json, demand.data)) return false;
  return storage::suits(demand.where, worker.labels) &&
         std::ranges::all_of(demand.weights,
                             [&](const auto& wanted) { return has(worker.weights_json, wanted.first); });
}

/// "no trial of rows b, c and 3 more has completed"
std::string not_completed(const std::vector<std::string>& rows, bool and_others) {
  constexpr std::size_t kNamed = 3;
  const std::vector<std::string> named{
      rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kNamed))};
  return fmt::format("no trial of row{} {}{} has completed", rows.size() == 1 && !and_others ? "" : "s",
                     fmt::join(named, ", "),
                     and_others             ? " and others"
                     : rows.size() > kNamed ? fmt::format(" and {} more", rows.size() - kNamed)
                                            : "");
}

}  // namespace

Forecasts::Forecasts(storage::Database& db, std::set<storage::SweepId> asked, Time now,
                     std::map<std::string, double> predicted)
    : db_{db}, asked_{std::move(asked)}, now_{now}, predicted_{std::move(predicted)} {}

double Forecasts::places(const StoredDemand& demand) const {
  const int nodes = std::max(1, demand.split.most_nodes);
  const double needed = std::max(1, demand.gpus / nodes);  // of each worker
  double places = 0;
  for (const WorkerRecord& worker : workers_)
    if (may_take(demand, worker)) places += std::floor(usable_slots(worker, demand.gpus) / needed);
  return std::floor(places / nodes);
}

double Forecasts::places(std::uint32_t shape) {
  const auto [found, is_new] = places_.try_emplace(shape);
  if (is_new) found->second = places(storage::QueueStore{db_}.demand(shape));
  return found->second;
}

bool Forecasts::is_command(std::uint32_t shape) {
  const auto [found, is_new] = commands_.try_emplace(shape);
  if (is_new) found->second = storage::QueueStore{db_}.demand(shape).command;
  return found->second;
}

const std::optional<Measured>& Forecasts::measured(const std::string& hash, int gpus) {
  const auto [found, is_new] = measured_.try_emplace({hash, gpus});
  if (is_new) found->second = storage::MeasuredStore{db_}.find(hash, gpus);
  return found->second;
}

Forecasts::Looked Forecasts::look_at(const storage::OpenStanding& standing,
                                     const std::vector<LeftOfRow>& rows,
                                     const std::vector<RunningTrial>& running) {
  Looked looked{.standing = standing};
  Remaining& remaining = looked.remaining;
  remaining.priority = standing.priority, remaining.owner = standing.owner,
  remaining.weight = standing.weight, remaining.preempts = standing.preempts;
  const int gpus = !rows.empty() ? rows.front().gpus : !running.empty() ? running.front().gpus : 0;
  remaining.slots_each = std::max(1, gpus);

  std::map<std::string, double> rates;  // hash -> seconds, of rows whose first trials run
  for (const RunningTrial& run : running)
    if (run.steps_per_second > 0 && run.total_steps > 0)
      for (const auto* hash : {&run.config_hash, &run.work_hash})
        if (!hash->empty()) rates[*hash] = run.total_steps / run.steps_per_second;
  std::map<std::string, std::uint32_t> by_config, by_work;  // runs that the forecast follows from
  std::set<std::string> covered;                            // work of rows that have run themselves
  bool is_predicted = false;
  const auto seconds_of = [&](const std::string& config, const std::string& work) -> std::optional<double> {
    is_predicted = false;
    if (const auto& found = measured(config, gpus)) {
      by_config[config] = found->runs;
      covered.insert(work);
      return found->seconds;
    }
    if (const auto& found = measured(work, gpus)) {
      by_work[work] = found->runs;
      return found->seconds;
    }
    for (const auto* hash : {&config, &work})
      if (const auto rate = rates.find(*hash); rate != rates.end()) return rate->second;
    const auto found = predicted_.find(config);
    const auto predicted = found != predicted_.end() ? std::optional{found->second}
                                                     : storage::MeasuredStore{db_}.predicted(config, gpus);
    is_predicted = predicted.has_value();
    return predicted;
  };

  double known = 0;
  int known_rows = 0;
  std::vector<std::string> unknown;
  double guessed = 0, widest = 0, longest = 0, work = 0;
  std::map<std::uint32_t, double> work_of_shape;
  const auto add_waiting = [&](double trials, double seconds, const std::string& of,
                               const std::vector<std::string>& after) {
    if (trials > 0)
      remaining.waiting.push_back({.trials = trials, .seconds = seconds, .row = of, .after = after});
  };
  for (const LeftOfRow& row : rows) {
    const auto seconds = seconds_of(row.config_hash, row.work_hash);
    if (seconds) known += *seconds, ++known_rows;
    if (row.waiting == 0) continue;
    if (row.first != 0)
      if (const auto [earlier, is_first] = wanted_by_.try_emplace(row.first, sweeps_.size()); !is_first) {
        looked.shared.push_back(remaining.waiting.size());
        looked.shares_with.insert(earlier->second);
      }
    if (is_predicted) looked.predicted += row.waiting;
    if (row.shape != 0) widest = std::max(widest, places(row.shape));
    if (seconds) {
      add_waiting(row.waiting, *seconds, row.id, row.after);
      work_of_shape[row.shape] += row.waiting * *seconds;
      continue;
    }
    unknown.push_back(row.id);
    guessed += row.waiting;
    add_waiting(row.waiting, -1, row.id, row.after);
  }
  std::vector<double> counted;                               // of other sweeps too
  std::vector<std::pair<std::string, double>> rows_running;  // row and seconds left
  bool is_leased = false;
  for (const RunningTrial& run : running) {
    if (run.shape != 0 && is_command(run.shape)) remaining.resumable = false;
    const auto seconds = seconds_of(run.config_hash, run.work_hash);
    const bool has_rate = run.started && run.steps_per_second > 0 && run.total_steps > 0;
    if (!seconds && !has_rate) ++guessed, unknown.push_back(run.row);
    const bool takes_trials = take_trials_.contains(run.worker);
    if (!run.started && takes_trials) {
      is_leased = true;
      if (run.shape != 0) widest = std::max(widest, places(run.shape));
      if (seconds) work_of_shape[run.shape] += *seconds;
      add_waiting(1, seconds.value_or(-1), run.row, {});
      continue;
    }
    const bool is_held = !held_.insert(run.trial).second;
    if (!is_held && !takes_trials) slots_ += remaining.slots_each;
    auto& left = is_held ? counted : remaining.running;
    if (has_rate)
      left.push_back((run.total_steps - std::min(run.step, run.total_steps)) / run.steps_per_second);
    else if (!seconds)
      left.push_back(-1);
    else
      left.push_back(std::max(
          *seconds - static_cast<double>((run.started ? now_ - run.since : Milliseconds{0}).count()) / 1000,
          *seconds / 20));
    rows_running.emplace_back(run.row, left.back());
  }
  remaining.counted = counted.size();
  remaining.running.insert(remaining.running.end(), counted.begin(), counted.end());
  for (const auto& [hash, runs] : by_config) looked.runs += runs;
  for (const auto& [hash, runs] : by_work) looked.runs += covered.contains(hash) ? 0 : runs;
  if (!unknown.empty() && known_rows >= kEnoughRows) {
    const double mean = known / known_rows;
    for (auto& kind : remaining.waiting)
      if (kind.seconds < 0) kind.seconds = mean;
    for (double& left : remaining.running)
      if (left < 0) left = mean;
    looked.guessed = static_cast<std::uint32_t>(std::llround(guessed));
  } else if (!unknown.empty()) {
    std::ranges::sort(unknown);
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    looked.unknown = not_completed(unknown, !rows.empty() && rows.front().stands_for_others);
    remaining.known = false;
  }
  for (auto& kind : remaining.waiting)  // what runs of those that it waits for ends first
    for (std::size_t i = 0; i < rows_running.size(); ++i)
      if (std::ranges::find(kind.after, rows_running[i].first) != kind.after.end())
        kind.ready = std::max(kind.ready, rows_running[i].second);
  for (const auto& [shape, seconds] : work_of_shape) {
    work += seconds;
    if (shape != 0 && places(shape) > 0) longest = std::max(longest, seconds / places(shape));
  }
  remaining.places = std::max({longest > 0 ? std::min(widest, work / longest) : widest,
                               static_cast<double>(remaining.running.size()), is_leased ? 1.0 : 0.0});
  if (standing.max_running) remaining.places = std::min<double>(remaining.places, *standing.max_running);
  if (remaining.places == 0 && !remaining.waiting.empty() && looked.unknown.empty()) {
    looked.unknown = !workers_.empty()   ? "no connected worker can take its trials"
                     : others_connected_ ? "every connected worker is drained, in quarantine or unhealthy"
                                         : "no worker is connected";
    remaining.known = false;
  }
  return looked;
}

void Forecasts::look() {
  if (std::exchange(looked_, true)) return;
  for (WorkerRecord& worker : storage::WorkerStore{db_}.list()) {
    if (!worker.connected) continue;
    if (worker.drained || worker.quarantine || !worker.trouble.empty()) {
      others_connected_ = true;
      continue;
    }
    slots_ += usable_slots(worker, 0);
    take_trials_.insert(worker.name);
    workers_.push_back(std::move(worker));
  }
  const storage::MeasuredStore store{db_};
  const auto open = store.open(kSweepsThatCompete);
  const auto share = [&](bool asked) {
    const auto sweeps =
        std::ranges::count_if(open, [&](const auto& sweep) { return asked_.contains(sweep.id) == asked; });
    const std::uint32_t all = asked ? kTrialsOfAsked : kTrialsOfOthers;
    return std::clamp<std::uint32_t>(all / static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, sweeps)), 8,
                                     kTrialsOfOne);
  };
  const std::uint32_t for_asked = share(true), for_others = share(false);
  const auto running = store.running();
  double in_use = 0;
  for (const auto& standing : open) {
    const auto rows =
        store.left(standing.id, standing.queued, asked_.contains(standing.id) ? for_asked : for_others);
    const auto own = running.find(standing.id);
    sweeps_.push_back(
        look_at(standing, rows, own == running.end() ? std::vector<RunningTrial>{} : own->second));
    const Remaining& left = sweeps_.back().remaining;
    in_use += static_cast<double>(left.running.size() - left.counted) * left.slots_each;
  }
  slots_ = std::max(slots_, in_use);
  std::vector<Remaining> remaining;
  for (const Looked& looked : sweeps_) remaining.push_back(looked.remaining);
  completions_ = completions(remaining, slots_);
  if (std::ranges::all_of(sweeps_, [](const Looked& looked) { return looked.shared.empty(); })) return;
  // A trial that several sweeps want is trained once: those that share it are complete when the first of them
  // has what is shared, if that is sooner than what each would need by itself.
  std::vector<Completion> once = completions(without_shared(), slots_);
  for (std::size_t i = 0; i < sweeps_.size(); ++i) {
    for (const std::size_t earlier : sweeps_[i].shares_with) {
      const Completion& other = completions_[earlier];
      if (!once[i].seconds || !other.seconds)
        once[i].seconds.reset();
      else if (*other.seconds > *once[i].seconds)
        once[i] = other;
    }
    if (once[i].seconds && (!completions_[i].seconds || *once[i].seconds < *completions_[i].seconds))
      completions_[i] = once[i];
  }
}

/// What each sweep needs beside what an earlier one waits for.
std::vector<Remaining> Forecasts::without_shared() const {
  std::vector<Remaining> all;
  for (const Looked& looked : sweeps_) {
    Remaining& own = all.emplace_back(looked.remaining);
    const auto is_waited_for = [&](const std::string& row) {  // a chain is as long, whoever trains its begin
      return std::ranges::any_of(own.waiting, [&](const Remaining::Kind& kind) {
        return std::ranges::find(kind.after, row) != kind.after.end();
      });
    };
    for (std::size_t i = looked.shared.size(); i-- > 0;)
      if (!is_waited_for(own.waiting[looked.shared[i]].row))
        own.waiting.erase(own.waiting.begin() + static_cast<std::ptrdiff_t>(looked.shared[i]));
  }
  return all;
}

v1::Forecast Forecasts::forecast(const Looked& looked, const Completion& completion,
                                 const std::vector<Looked>& all) const {
  v1::Forecast message;
  message.set_runs(looked.runs);
  if (completion.seconds) {
    message.set_seconds(*completion.seconds);
    *message.mutable_complete() =
        to_proto(now_ + Milliseconds{static_cast<std::int64_t>(std::min(*completion.seconds, 1e9) * 1000)});
    message.set_at_once(completion.at_once);
    message.set_guessed(looked.guessed);
    message.set_predicted(static_cast<std::uint32_t>(std::llround(looked.predicted)));
    return message;
  }
  message.set_unknown(looked.unknown);
  if (!looked.unknown.empty()) return message;
  for (const Looked& other : all)  // by priority
    if (!other.remaining.known) {
      message.set_unknown(fmt::format("it waits for sweep {}: {}", other.standing.name, other.unknown));
      break;
    }
  return message;
}

std::optional<v1::Forecast> Forecasts::of(storage::SweepId sweep) {
  look();
  const auto found =
      std::ranges::find(sweeps_, sweep, [](const Looked& looked) { return looked.standing.id; });
  if (found == sweeps_.end()) return std::nullopt;
  return forecast(*found, completions_[static_cast<std::size_t>(found - sweeps_.begin())], sweeps_);
}

v1::Forecast Forecasts::of_new(std::vector<LeftOfRow> rows, const StoredDemand& demand) {
  look();
  places_[kNewShape] = places(demand);
  for (LeftOfRow& row : rows) row.shape = kNewShape, row.gpus = demand.gpus;
  std::vector<Remaining> remaining = without_shared();
  storage::OpenStanding standing{.owner = "\n"};  // which nobody has
  const Looked looked = look_at(standing, rows, {});
  remaining.push_back(looked.remaining);
  return forecast(looked, completions(remaining, std::max(slots_, 1.0)).back(), sweeps_);
}

}  // namespace abl::views
