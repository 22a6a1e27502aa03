// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

namespace abl::views {
namespace {

using storage::TrialState;

double trials_of(const Remaining& sweep) {
  double trials = static_cast<double>(sweep.running.size());
  for (const auto& kind : sweep.waiting) trials += kind.trials;
  return trials;
}

/// Seconds of one trial after the other.
double work_of(const Remaining& sweep) {
  double work = std::accumulate(sweep.running.begin(), sweep.running.end(), 0.0);
  for (const auto& kind : sweep.waiting) work += kind.trials * kind.seconds;
  return work;
}

/// A part of some slots: by weight, and no more than its most.
struct Share {
  double weight = 1, most = 0;
  double got = 0;
};

/// Returns: what is left.
double divide(double slots, std::vector<Share>& shares) {
  std::vector<Share*> order;
  double weight = 0;
  for (Share& share : shares) order.push_back(&share), weight += share.weight;
  std::ranges::sort(order, {}, [](const Share* share) { return share->most / share->weight; });
  for (Share* share : order) {
    share->got = std::min(share->most, slots * share->weight / weight);
    slots -= share->got;
    weight -= share->weight;
  }
  return slots;
}

/// The sweeps that still need slots, as they are shared.
class Contest {
 public:
  Contest(const std::vector<Remaining>& sweeps, double slots) : sweeps_{sweeps}, slots_{slots} {
    for (std::size_t i = 0; i < sweeps.size(); ++i)
      if (trials_of(sweeps[i]) > 0) groups_[sweeps[i].priority][sweeps[i].owner].push_back(i);
  }
  /// Slots of each.
  std::vector<double> shares() const {
    std::vector<double> result(sweeps_.size());
    double left = slots_;
    for (const auto& [priority, owners] : groups_) {
      std::vector<std::vector<Share>> own;
      std::vector<Share> of_owners;
      for (const auto& [owner, sweeps] : owners) {
        auto& shares = own.emplace_back();
        Share& all = of_owners.emplace_back();
        for (const std::size_t i : sweeps) {
          const Remaining& sweep = sweeps_[i];
          shares.push_back(
              {.weight = sweep.weight, .most = sweep.slots_each * std::min(sweep.places, trials_of(sweep))});
          all.most += shares.back().most;
        }
      }
      left = divide(left, of_owners);
      std::size_t owner = 0;
      for (const auto& [name, sweeps] : owners) {
        divide(of_owners[owner].got, own[owner]);
        for (std::size_t i = 0; i < sweeps.size(); ++i) result[sweeps[i]] = own[owner][i].got;
        ++owner;
      }
    }
    return result;
  }
  void leave(std::size_t sweep) {
    auto& owners = groups_.at(sweeps_[sweep].priority);
    auto& sweeps = owners.at(sweeps_[sweep].owner);
    std::erase(sweeps, sweep);
    if (sweeps.empty()) owners.erase(sweeps_[sweep].owner);
    if (owners.empty()) groups_.erase(sweeps_[sweep].priority);
  }

 private:
  const std::vector<Remaining>& sweeps_;
  const double slots_;
  std::map<int, std::map<std::string, std::vector<std::size_t>>, std::greater<>> groups_;
};

/// When each is done if trials were no units: nothing where that depends on one of which nothing is known.
std::vector<std::optional<double>> ends_of(const std::vector<Remaining>& sweeps, double slots) {
  std::vector<std::optional<double>> ends(sweeps.size());
  std::vector<double> left(sweeps.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i)
    left[i] =
        sweeps[i].known ? work_of(sweeps[i]) * sweeps[i].slots_each : std::numeric_limits<double>::infinity();
  Contest contest{sweeps, slots};
  for (double time = 0;;) {
    const std::vector<double> shares = contest.shares();
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < sweeps.size(); ++i)
      if (!ends[i] && shares[i] > 0) step = std::min(step, left[i] / shares[i]);
    if (!std::isfinite(step)) return ends;
    time += step;
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      if (ends[i] || shares[i] <= 0) continue;
      left[i] -= step * shares[i];
      if (left[i] > 1e-9 * (1 + time)) continue;
      ends[i] = time;
      contest.leave(i);
    }
  }
}

/// So many trials at once, a whole number.
double makespan_of(const Remaining& sweep, std::size_t at_once) {
  constexpr double kMost = 10'000;  // of more than so many trials one more or less makes no difference
  const double longest_run = sweep.running.empty() ? 0 : std::ranges::max(sweep.running);
  double longest = 0;
  for (const auto& kind : sweep.waiting) longest = std::max(longest, kind.seconds);
  if (trials_of(sweep) > kMost)
    return std::max(longest_run, work_of(sweep) / static_cast<double>(at_once) + longest / 2);
  std::vector<double> busy = sweep.running;
  std::ranges::sort(busy, std::greater{});
  busy.resize(std::max<std::size_t>(at_once, 1), 0);  // the first of more that end are not followed by others
  std::priority_queue<double, std::vector<double>, std::greater<>> places{std::greater{}, std::move(busy)};
  double last = longest_run;
  std::vector<double> done(sweep.waiting.size());
  for (double round = 1;
       std::ranges::any_of(sweep.waiting, [&](const auto& kind) { return kind.trials > round - 1; }); ++round)
    for (std::size_t i = 0; i < sweep.waiting.size(); ++i) {
      const auto& kind = sweep.waiting[i];
      const double part = std::min(1.0, kind.trials - done[i]);  // of a trial, where numbers are estimated
      if (part <= 0) continue;
      done[i] += part;
      const double end = places.top() + part * kind.seconds;
      places.pop();
      places.push(end);
      last = std::max(last, end);
    }
  return last;
}

}  // namespace

std::optional<double> trial_eta(const storage::Pace& pace) {
  if (pace.state != TrialState::kRunning || pace.steps_per_second <= 0 || pace.total_steps == 0)
    return std::nullopt;
  return (pace.total_steps - std::min(pace.step, pace.total_steps)) / pace.steps_per_second;
}

double makespan(const Remaining& sweep, double at_once) {
  if (at_once <= 1) return makespan_of(sweep, 1) / std::max(at_once, 1e-3);
  const double whole = std::floor(at_once), part = at_once - whole;
  const double slow = makespan_of(sweep, static_cast<std::size_t>(whole));
  if (part < 1e-6 || slow == 0) return slow;
  const double quick = makespan_of(sweep, static_cast<std::size_t>(whole) + 1);
  return 1 / ((1 - part) / slow + part / quick);  // as much of the work in the same time
}

std::vector<Completion> completions(const std::vector<Remaining>& sweeps, double slots) {
  const auto ends = ends_of(sweeps, slots);
  std::vector<Completion> result(sweeps.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    const Remaining& sweep = sweeps[i];
    if (!sweep.known) continue;
    if (sweep.waiting.empty()) {  // nothing takes their slots away
      result[i].at_once = static_cast<double>(sweep.running.size());
      result[i].seconds = sweep.running.empty() ? 0 : std::ranges::max(sweep.running);
    } else if (ends[i]) {
      result[i].at_once = *ends[i] > 0 ? work_of(sweep) / *ends[i] : sweep.places;
      result[i].seconds = std::max(*ends[i], makespan(sweep, result[i].at_once));
    }
  }
  return result;
}

}  // namespace abl::views
