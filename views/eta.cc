// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

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

/// A part of some slots: by weight, no less than what it holds already and no more than its most.
struct Share {
  double weight = 1, held = 0, most = 0;
  double got = 0;
};

/// Returns: what is left.
double divide(double slots, std::vector<Share>& shares) {
  std::vector<std::pair<double, double>> turns;  // slots for each weight where one begins to get, or has all
  double given = 0, weight = 0, level = 0;
  for (const Share& share : shares) {
    given += share.held;
    turns.emplace_back(share.held / share.weight, share.weight);
    turns.emplace_back(share.most / share.weight, -share.weight);
  }
  std::ranges::sort(turns);
  for (const auto& [turn, change] : turns) {
    const double more = std::max(0.0, weight * (turn - level));
    if (given + more > slots) {
      if (more > 0) level += std::max(0.0, slots - given) / weight;
      break;
    }
    given += more, level = turn, weight += change;
  }
  for (Share& share : shares)
    slots -= share.got = std::max(share.held, std::min(share.most, level * share.weight));
  return std::max(0.0, slots);
}

/// What a sweep still needs, as slots are shared.
struct Need {
  double held = 0;     ///< slots of what runs
  double waiting = 0;  ///< seconds of a slot
  double most = 0;     ///< slots, while something waits
  double wanted() const { return waiting > 0 ? std::max(most, held) : held; }
};

/// The sweeps that still need slots, as they are shared.
class Contest {
 public:
  Contest(const std::vector<Remaining>& sweeps, double slots) : sweeps_{sweeps}, slots_{slots} {
    for (std::size_t i = 0; i < sweeps.size(); ++i)
      if (trials_of(sweeps[i]) > 0) groups_[sweeps[i].priority][sweeps[i].owner].push_back(i);
  }
  /// Slots of each.
  std::vector<double> shares(const std::vector<Need>& needs) const {
    std::vector<double> result(sweeps_.size());
    double left = slots_;
    for (const auto& [priority, owners] : groups_)
      for (const auto& [owner, sweeps] : owners)
        for (const std::size_t i : sweeps) left -= needs[i].held;
    for (const auto& [priority, owners] : groups_) {
      std::vector<std::vector<Share>> own;
      std::vector<Share> of_owners;
      for (const auto& [owner, sweeps] : owners) {
        auto& shares = own.emplace_back();
        Share& all = of_owners.emplace_back();
        for (const std::size_t i : sweeps) {
          shares.push_back({.weight = sweeps_[i].weight, .held = needs[i].held, .most = needs[i].wanted()});
          all.held += shares.back().held;
          all.most += shares.back().most;
        }
        left += all.held;
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

/// Slots that become free.
struct Freed {
  double time = 0;
  std::size_t sweep = 0;
};

/// When slots become free, in this order. Of many runs some that end one after the other end together at
/// their mean, so that the looks at all sweeps are not as many as there are slots.
std::vector<Freed> freed_of(const std::vector<Remaining>& sweeps, const std::vector<std::size_t>& stopped) {
  constexpr std::size_t kMostLooks = 64;
  std::vector<Freed> freed;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    const auto& running = sweeps[i].running;
    for (std::size_t run = stopped[i]; run + sweeps[i].counted < running.size(); ++run)
      if (running[run] >= 0) freed.push_back({.time = running[run], .sweep = i});
  }
  std::ranges::sort(freed, {}, &Freed::time);
  const std::size_t together = (freed.size() + kMostLooks - 1) / kMostLooks;
  for (std::size_t first = 0; together > 1 && first < freed.size(); first += together) {
    const std::span some{freed.data() + first, std::min(together, freed.size() - first)};
    double sum = 0;
    for (const Freed& run : some) sum += run.time;
    for (Freed& run : some) run.time = sum / static_cast<double>(some.size());
  }
  return freed;
}

/// How a sweep's waiting trials go, if trials were no units.
struct Course {
  std::optional<double> end;    ///< of all that waits; nothing where that depends on what is not known
  std::optional<double> start;  ///< when it has slots first
  double used = 0;              ///< seconds of a slot, of its runs too, until the end
  std::size_t stopped = 0;      ///< of its runs so many, the first, give way
};

/// Runs of lower priority give way to sweeps that preempt, the lowest first.
void preempt(const std::vector<Remaining>& sweeps, const Contest& contest, std::vector<Need>& needs,
             std::vector<Course>& courses) {
  if (std::ranges::none_of(sweeps, &Remaining::preempts)) return;
  std::vector<std::size_t> order(sweeps.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sweeps[i].priority; });
  for (const std::size_t first : order | std::views::reverse) {
    if (!sweeps[first].preempts || needs[first].waiting <= 0) continue;
    double missing = needs[first].wanted() - contest.shares(needs)[first];
    for (const std::size_t i : order) {
      const Remaining& sweep = sweeps[i];
      if (sweep.priority >= sweeps[first].priority || missing <= 1e-9) break;
      auto& stopped = courses[i].stopped;
      for (; sweep.resumable && missing > 1e-9 && stopped + sweep.counted < sweep.running.size(); ++stopped) {
        const double left = sweep.running[stopped];
        missing -= sweep.slots_each;
        needs[i].held -= sweep.slots_each;
        needs[i].most = std::max(needs[i].most, static_cast<double>(sweep.slots_each));
        needs[i].waiting += left < 0 ? std::numeric_limits<double>::infinity() : left * sweep.slots_each;
      }
    }
  }
}

std::vector<Course> courses_of(const std::vector<Remaining>& sweeps, double slots) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr double kShortest = 1e-4;  // what takes no time waits for a slot too
  std::vector<Course> courses(sweeps.size());
  std::vector<Need> needs(sweeps.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    const Remaining& sweep = sweeps[i];
    needs[i].held = static_cast<double>(sweep.running.size() - sweep.counted) * sweep.slots_each;
    for (const auto& kind : sweep.waiting)
      needs[i].waiting += kind.trials * std::max(kind.seconds, kShortest) * sweep.slots_each;
    if (!sweep.known && !sweep.waiting.empty()) needs[i].waiting = kNever;
    needs[i].most = sweep.slots_each * std::min(sweep.places, trials_of(sweep));
  }
  Contest contest{sweeps, slots};
  preempt(sweeps, contest, needs, courses);
  std::vector<std::size_t> stopped;
  for (const Course& course : courses) stopped.push_back(course.stopped);
  const std::vector<Freed> freed = freed_of(sweeps, stopped);
  auto next = freed.begin();
  for (double time = 0;;) {
    const std::vector<double> shares = contest.shares(needs);
    double step = next == freed.end() ? kNever : next->time - time;
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      if (needs[i].waiting <= 0) continue;
      if (shares[i] > 1e-9 && !courses[i].start) courses[i].start = time;
      if (const double more = shares[i] - needs[i].held; more > 1e-9)
        step = std::min(step, needs[i].waiting / more);
    }
    if (!std::isfinite(step)) return courses;
    time += step;
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      Need& need = needs[i];
      if (need.waiting <= 0) continue;
      need.waiting -= step * (shares[i] - need.held);
      courses[i].used += step * shares[i];
      if (need.waiting > 1e-9 * (1 + time)) continue;
      need.waiting = 0;
      courses[i].end = time;
      if (need.held <= 0) contest.leave(i);
    }
    for (; next != freed.end() && next->time <= time; ++next) {
      Need& need = needs[next->sweep];
      need.held = std::max(0.0, need.held - sweeps[next->sweep].slots_each);
      if (need.held <= 0 && need.waiting <= 0) contest.leave(next->sweep);
    }
  }
}

/// Indices of those kinds that each one waits for.
std::vector<std::vector<std::size_t>> chains_of(const std::vector<Remaining::Kind>& kinds) {
  std::vector<std::vector<std::size_t>> before(kinds.size());
  std::map<std::string_view, std::vector<std::size_t>> of_row;  // however many rows wait for others
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (!kinds[i].row.empty()) of_row[kinds[i].row].push_back(i);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (const std::string& row : kinds[i].after)
      if (const auto found = of_row.find(row); found != of_row.end())
        for (const std::size_t other : found->second)
          if (other != i) before[i].push_back(other);
  return before;
}

/// Seconds of the longest chain of trials that run one after the other.
double longest_chain(const std::vector<Remaining::Kind>& kinds) {
  const auto before = chains_of(kinds);
  std::vector<double> ends(kinds.size(), -1);
  const std::function<double(std::size_t)> end_of = [&](std::size_t i) {
    if (ends[i] >= 0) return ends[i];
    ends[i] = 0;  // where rows would wait for each other
    double start = kinds[i].ready;
    for (const std::size_t other : before[i]) start = std::max(start, end_of(other));
    return ends[i] = start + (kinds[i].trials > 0 ? kinds[i].seconds : 0);
  };
  double longest = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) longest = std::max(longest, end_of(i));
  return longest;
}

/// As `makespan_of`, of trials that wait for others. A place that is free takes the first trial that may
/// begin, by rounds, as the scheduler does.
double makespan_of_chains(const Remaining& sweep, std::vector<double> places) {
  struct Unit {
    std::size_t kind = 0, round = 0;
    double part = 1, ready = 0;
    std::size_t awaits = 0;
    std::vector<std::size_t> next{};  // that wait for it
  };
  std::vector<Unit> units;
  std::vector<std::size_t> first(sweep.waiting.size()), count(sweep.waiting.size());
  for (std::size_t i = 0; i < sweep.waiting.size(); ++i) {
    const auto& kind = sweep.waiting[i];
    first[i] = units.size();
    for (double done = 0; done < kind.trials; ++done)
      units.push_back({.kind = i,
                       .round = static_cast<std::size_t>(done),
                       .part = std::min(1.0, kind.trials - done),
                       .ready = kind.ready});
    count[i] = units.size() - first[i];
  }
  const auto before = chains_of(sweep.waiting);
  for (std::size_t i = 0; i < sweep.waiting.size(); ++i)
    for (const std::size_t other : before[i])
      for (std::size_t round = 0; round < count[i]; ++round) {
        // the first of them wait for what runs already; where nothing does, all for those of one seed
        const std::size_t done = count[i] > count[other] ? count[i] - count[other] : 0;
        if (count[other] == 0 || (round < done && sweep.waiting[i].ready > 0)) continue;
        units[first[other] + (round < done ? 0 : round - done)].next.push_back(first[i] + round);
        ++units[first[i] + round].awaits;
      }
  const auto later = [&](std::size_t a, std::size_t b) { return units[a].ready > units[b].ready; };
  const auto behind = [&](std::size_t a, std::size_t b) {
    return std::pair{units[a].round, a} > std::pair{units[b].round, b};
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> pending{later};
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(behind)> open{behind};
  for (std::size_t i = 0; i < units.size(); ++i)
    if (units[i].awaits == 0) pending.push(i);
  std::priority_queue<double, std::vector<double>, std::greater<>> free{std::greater{}, std::move(places)};
  double last = sweep.running.empty() ? 0 : std::ranges::max(sweep.running);
  while (!pending.empty() || !open.empty()) {
    double time = free.top();
    free.pop();
    if (open.empty()) time = std::max(time, units[pending.top()].ready);
    for (; !pending.empty() && units[pending.top()].ready <= time; pending.pop()) open.push(pending.top());
    const std::size_t taken = open.top();
    open.pop();
    const double end = time + units[taken].part * sweep.waiting[units[taken].kind].seconds;
    free.push(end);
    last = std::max(last, end);
    for (const std::size_t next : units[taken].next) {
      units[next].ready = std::max(units[next].ready, end);
      if (--units[next].awaits == 0) pending.push(next);
    }
  }
  return last;
}

/// So many trials at once, a whole number.
double makespan_of(const Remaining& sweep, std::size_t at_once) {
  constexpr double kMost = 10'000;  // of more than so many trials one more or less makes no difference
  const double longest_run = sweep.running.empty() ? 0 : std::ranges::max(sweep.running);
  double longest = 0;
  for (const auto& kind : sweep.waiting) longest = std::max(longest, kind.seconds);
  if (trials_of(sweep) > kMost)
    return std::max({longest_run, work_of(sweep) / static_cast<double>(at_once) + longest / 2,
                     longest_chain(sweep.waiting)});
  std::vector<double> busy = sweep.running;
  std::ranges::sort(busy, std::greater{});
  busy.resize(std::max<std::size_t>(at_once, 1), 0);  // the first of more that end are not followed by others
  if (std::ranges::any_of(sweep.waiting,
                          [](const auto& kind) { return kind.ready > 0 || !kind.after.empty(); }))
    return makespan_of_chains(sweep, std::move(busy));
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
  const auto courses = courses_of(sweeps, slots);
  std::vector<Completion> result(sweeps.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    const Remaining& sweep = sweeps[i];
    const Course& course = courses[i];
    if (!sweep.known) continue;
    if (sweep.waiting.empty() && course.stopped == 0) {  // nothing takes their slots away
      result[i].at_once = static_cast<double>(sweep.running.size());
      result[i].seconds = sweep.running.empty() ? 0 : std::ranges::max(sweep.running);
    } else if (course.end) {
      const double start = course.start.value_or(0), time = *course.end - start;
      result[i].at_once = time > 0 ? course.used / sweep.slots_each / time : sweep.places;
      Remaining then;  // as it is when it has slots
      then.waiting = sweep.waiting;
      for (auto& kind : then.waiting) kind.ready = std::max(0.0, kind.ready - start);
      for (std::size_t run = 0; run + sweep.counted < sweep.running.size(); ++run)
        if (const double left = sweep.running[run]; run < course.stopped)
          then.waiting.push_back({.trials = 1, .seconds = left});
        else
          then.running.push_back(std::max(0.0, left - start));
      result[i].seconds = std::max(*course.end, start + makespan(then, result[i].at_once));
      if (sweep.counted > 0)
        result[i].seconds =
            std::max(*result[i].seconds,
                     *std::max_element(sweep.running.end() - static_cast<std::ptrdiff_t>(sweep.counted),
                                       sweep.running.end()));
    }
  }
  return result;
}

}  // namespace abl::views
