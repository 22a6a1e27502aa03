// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scheduler/dispatch.h"
#include "scheduler/failure_policy.h"
#include "scheduler/fleet.h"
#include "scheduler/work_queue.h"
#include "storage/sweep_store.h"
#include "views/eta.h"

namespace abl::scheduler {

/// The queue, the fleet and the policies as the scheduler has them, with workers that are numbers, and a
/// clock that jumps from event to event: what a day of a thousand workers comes to, in seconds. Nothing is
/// stored and nothing sent.
class Simulator {
 public:
  using Seconds = std::chrono::seconds;

  struct SweepPlan {
    std::string owner = "alice";
    int priority = 0;
    double weight = 1;
    bool preempts = false;
    int gpus = 1;
    Seconds arrives{0};
    std::vector<Seconds> lengths;  ///< of its trials
    int levels = 1;                ///< the first trial has the first level of a factor, the next the next
    int failing_level = -1;        ///< all trials of it fail
    int retries = 0;
  };

  /// What became of a sweep.
  struct Outcome {
    std::vector<double> waits;  ///< of its trials, from their arrival to their first start, in seconds
    double first_start = 0, end = 0;
    double gpu_seconds = 0;                           ///< used, lost work among it
    std::map<std::int64_t, double> by_hour;           ///< of these, in each hour
    std::size_t completed = 0, failed = 0, held = 0;  ///< trials
  };

  Simulator(int workers, int gpus_each) : gpus_{workers * gpus_each} {
    for (int i = 0; i < workers; ++i) {
      ablate::v1::Hello hello;
      hello.set_name(fmt::format("w{}", i));
      hello.set_host(hello.name());
      hello.set_result_version(1);
      for (int slot = 0; slot < gpus_each; ++slot) {
        auto& said = *hello.add_slots();
        said.set_index(static_cast<std::uint32_t>(slot));
        said.set_device(fmt::format("cuda:{}", slot));
      }
      fleet_.add(std::make_shared<const Session>(
                     Session{static_cast<std::uint64_t>(i + 1), std::move(hello), nullptr}),
                 {}, now_);
    }
    queue_.set_canaries(kCanaries);
  }

  void submit(SweepPlan plan) {
    events_.push(
        {now_ + plan.arrives, next_event_++, Kind::kSubmit, static_cast<std::uint32_t>(plans_.size()), 0});
    plans_.push_back(std::move(plan));
    outcomes_.emplace_back();
    measured_.emplace_back();
  }
  /// Each run ends after a random part of its length with this chance, and its trial goes back to the queue:
  /// a worker that died, say.
  void lose(double chance) { loss_ = chance; }
  /// Whatever runs on this worker fails within seconds.
  void break_worker(int worker) { broken_.insert(static_cast<std::uint64_t>(worker + 1)); }

  /// Calls back once when so many trials have completed, before others take their places.
  void when_completed(std::size_t trials, std::function<void()> look) {
    looks_.emplace(trials, std::move(look));
  }
  /// When each sweep will be complete, as people are told: by the mean of its completed trials.
  std::vector<views::Completion> forecast() const {
    std::vector<views::Remaining> remaining;
    for (std::size_t sweep = 0; sweep < plans_.size(); ++sweep) {
      const SweepPlan& plan = plans_[sweep];
      const Measured& done = measured_[sweep];
      const double mean = done.trials == 0 ? -1 : done.seconds / done.trials;
      views::Remaining left{.known = done.trials > 0,
                            .slots_each = plan.gpus,
                            .places = static_cast<double>(gpus_ / plan.gpus),
                            .priority = plan.priority,
                            .owner = plan.owner,
                            .weight = plan.weight};
      double waiting = 0;
      for (const Trial& trial : trials_)
        if (trial.sweep == sweep && !trial.over) {
          if (trial.run == 0)
            ++waiting;
          else
            left.running.push_back(std::max(mean - seconds(now_ - trial.started), mean / 20));
        }
      if (waiting > 0) left.waiting.push_back({waiting, mean});
      remaining.push_back(std::move(left));
    }
    return views::completions(remaining, gpus_);
  }
  double now() const { return seconds(now_ - kStart); }

  /// Until nothing is left.
  void run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      happen(event);
      while (!events_.empty() && events_.top().time == now_) {  // one look for all that happened at once
        const Event other = events_.top();
        events_.pop();
        happen(other);
      }
      if (quarantined_ > 0) fleet_.end_rests(now_);  // else there is no need to look at each worker
      dispatch();
    }
  }

  const Outcome& outcome(std::size_t sweep) const { return outcomes_.at(sweep); }
  double makespan() const { return seconds(now_ - kStart); }
  /// No schedule is shorter: all work over all GPUs, or the longest trial after its arrival.
  double lower_bound() const {
    double work = 0, longest = 0;
    for (const SweepPlan& plan : plans_)
      for (const Seconds length : plan.lengths) {
        work += static_cast<double>(length.count()) * plan.gpus;
        longest = std::max(longest, static_cast<double>((plan.arrives + length).count()));
      }
    return std::max(work / gpus_, longest);
  }
  double utilisation() const {
    double used = 0;
    for (const Outcome& outcome : outcomes_) used += outcome.gpu_seconds;
    return used / (gpus_ * makespan());
  }
  std::size_t preempted() const { return preempted_; }
  std::size_t lost() const { return lost_; }
  std::size_t quarantined() const {
    return quarantined_;
  }  ///< so often a worker came into quarantine, or stayed

 private:
  enum class Kind { kEnd, kLoss, kFailure, kMetric, kRest, kSubmit };
  struct Event {
    Time time;
    std::uint64_t order = 0;
    Kind kind = Kind::kEnd;
    std::uint32_t subject = 0;  // trial, or sweep
    storage::RunId run = 0;
    bool operator<(const Event& other) const {
      return std::tie(other.time, other.order) < std::tie(time, order);
    }
  };
  struct Trial {
    std::size_t sweep = 0;
    std::uint32_t place = 0;
    Milliseconds left{};  // a run that is stopped has written a checkpoint
    Time arrived{}, started{};
    storage::RunId run = 0;
    std::uint64_t session = 0;
    int failures = 0;
    bool has_waited = false, queued = false, over = false;
  };
  struct Level {
    std::uint32_t failures = 0;
    std::set<std::uint64_t> failed_on;
    bool completed = false, held = false;
  };
  static constexpr Time kStart{std::chrono::hours{1000}};
  static double seconds(Milliseconds time) { return static_cast<double>(time.count()) / 1000; }

  void happen(const Event& event) {
    if (event.kind == Kind::kSubmit)
      arrive(event.subject);
    else if (event.kind == Kind::kMetric)
      get_through(event.subject, event.run);
    else if (event.kind != Kind::kRest)
      end(event.subject, event.run, event.kind);
  }

  static std::string name_of(std::uint64_t session) { return fmt::format("w{}", session - 1); }
  storage::SweepId id_of(std::size_t sweep) const { return static_cast<storage::SweepId>(sweep + 1); }

  void put_sweep(std::size_t sweep, bool canary) {
    const SweepPlan& plan = plans_[sweep];
    queue_.put_sweep({.id = id_of(sweep),
                      .priority = plan.priority,
                      .owner = plan.owner,
                      .weight = plan.weight,
                      .preempts = plan.preempts,
                      .canary = canary});
    canary_[sweep] = canary;
  }

  /// A run has reported a number.
  void get_through(storage::TrialId id, storage::RunId run) {
    const Trial& trial = trials_[id - 1];
    if (trial.run != run) return;
    quarantine_.got_through(name_of(trial.session), {id_of(trial.sweep)});
    if (canary_[trial.sweep]) put_sweep(trial.sweep, false);
  }

  void confine(const std::vector<Quarantine::Change>& changes) {
    for (const Quarantine::Change& change : changes) {
      fleet_.set_quarantine(change.worker, change.why, now_ + change.back_off);
      if (!change.why) continue;
      ++quarantined_;
      events_.push({now_ + change.back_off, next_event_++, Kind::kRest, 0, 0});
    }
  }

  /// As the store counts them and the coordinator judges.
  void count_failure(const Trial& trial) {
    const std::string worker = name_of(trial.session);
    if (quarantine_.contains(worker)) return;
    auto& levels = levels_[trial.sweep];
    const int of = static_cast<int>(trial.place) % plans_[trial.sweep].levels;
    const bool any = std::ranges::any_of(levels, [](const auto& level) { return level.second.completed; });
    if (levels[of].held) return;
    for (const int index : {of, -1}) {
      ++levels[index].failures;
      levels[index].failed_on.insert(trial.session);
    }
    for (const int index : {of, -1}) {  // the level, and the whole sweep
      if (index >= 0 && plans_[trial.sweep].levels == 1) continue;
      Level& level = levels[index];
      const storage::FailureCounts counts{
          .of = {id_of(trial.sweep), index < 0 ? "" : "level", index < 0 ? "" : "x"},
          .failures = level.failures,
          .sweep_failures = levels[-1].failures,
          .several_workers = level.failed_on.size() > 1,
          .completed = index < 0 ? any : level.completed,
          .sweep_completed = any,
          .canary = canary_[trial.sweep],
          .held = level.held};
      if (!is_to_hold(counts, true)) continue;
      level.held = true;
      if (index >= 0) levels[-1].failures -= level.failures;
      for (std::size_t i = 0; i < trials_.size(); ++i) {
        Trial& other = trials_[i];
        if (other.sweep != trial.sweep || !other.queued) continue;
        if (index >= 0 && static_cast<int>(other.place) % plans_[trial.sweep].levels != index) continue;
        other.queued = false;
        other.over = true;
        ++outcomes_[trial.sweep].held;
        queue_.erase(static_cast<storage::TrialId>(i + 1));
      }
      return;
    }
  }

  void arrive(std::uint32_t sweep) {
    const SweepPlan& plan = plans_[sweep];
    queue_.put_shape(static_cast<storage::ShapeId>(plan.gpus), {.gpus = plan.gpus, .result_version = 1});
    put_sweep(sweep, plan.lengths.size() >= storage::SweepStore::kCanaryFrom);
    for (std::uint32_t i = 0; i < plan.lengths.size(); ++i) {
      trials_.push_back({.sweep = sweep, .place = i, .left = plan.lengths[i], .arrived = now_});
      put(static_cast<storage::TrialId>(trials_.size()), false);
    }
  }
  void put(storage::TrialId id, bool under_way) {
    Trial& trial = trials_[id - 1];
    trial.queued = !under_way;
    queue_.put({.id = id,
                .shape = static_cast<storage::ShapeId>(plans_[trial.sweep].gpus),
                .under_way = under_way,
                .claims = {{static_cast<storage::SweepId>(trial.sweep + 1), trial.place, 0}}},
               now_);
  }
  void dispatch() {
    Picks picked = pick(queue_, fleet_, policy_, now_);
    for (const Pick& pick : picked.picks) start(pick);
    if (!picked.waits) return;
    for (const storage::RunId run :
         fleet_.preempt_for(picked.waits->demand, picked.waits->priority, picked.waits->preempting)) {
      ++preempted_;
      events_.push({now_ + Seconds{5}, next_event_++, Kind::kLoss, trial_of_run_.at(run), run});
    }
  }
  void start(const Pick& pick) {
    Trial& trial = trials_[pick.demand.trial - 1];
    Outcome& outcome = outcomes_[trial.sweep];
    if (!std::exchange(trial.has_waited, true)) {
      outcome.waits.push_back(seconds(now_ - trial.arrived));
      if (outcome.waits.size() == 1) outcome.first_start = seconds(now_ - kStart);
    }
    trial.started = now_;
    trial.run = next_run_++;
    trial.session = pick.placement.session;
    trial_of_run_[trial.run] = pick.demand.trial;
    quarantine_.began(name_of(trial.session), {id_of(trial.sweep)});
    put(pick.demand.trial, true);
    fleet_.occupy(pick.placement.session, trial.run, pick.placement.slots,
                  {.priority = pick.priority, .resumable = true}, now_);
    const bool lost = std::bernoulli_distribution{loss_}(random_);
    Milliseconds length = trial.left;
    if (lost)
      length = Milliseconds{static_cast<std::int64_t>(static_cast<double>(length.count()) *
                                                      std::uniform_real_distribution{}(random_))};
    const SweepPlan& plan = plans_[trial.sweep];
    const bool fails =
        broken_.contains(trial.session) || static_cast<int>(trial.place) % plan.levels == plan.failing_level;
    if (fails) length = std::min<Milliseconds>(length, Seconds{10});
    const Kind kind = fails ? Kind::kFailure : lost ? Kind::kLoss : Kind::kEnd;
    events_.push({now_ + length, next_event_++, kind, pick.demand.trial, trial.run});
    if (!fails && canary_[trial.sweep])
      events_.push({now_ + Seconds{60}, next_event_++, Kind::kMetric, pick.demand.trial, trial.run});
  }
  void end(storage::TrialId id, storage::RunId run, Kind kind) {
    Trial& trial = trials_[id - 1];
    if (trial.run != run) return;  // it was over before
    trial.run = 0;
    trial_of_run_.erase(run);
    const bool probe = fleet_.is_probe(run);
    fleet_.release(run, now_);
    Outcome& outcome = outcomes_[trial.sweep];
    for (Time from = trial.started; from < now_;) {
      const std::int64_t hour = std::chrono::duration_cast<std::chrono::hours>(from - kStart).count();
      const Time to = std::min<Time>(now_, kStart + std::chrono::hours{hour + 1});
      outcome.by_hour[hour] += seconds(to - from) * plans_[trial.sweep].gpus;
      from = to;
    }
    outcome.gpu_seconds += seconds(now_ - trial.started) * plans_[trial.sweep].gpus;
    if (kind == Kind::kFailure) {
      confine(quarantine_.failed(name_of(trial.session), id, {id_of(trial.sweep)}, "failed", probe));
      if (trial.failures++ < plans_[trial.sweep].retries) return put(id, false);
      ++outcome.failed;
      outcome.end = seconds(now_ - kStart);
      trial.over = true;
      queue_.erase(id);
      count_failure(trial);
      return;
    }
    if (kind == Kind::kLoss && now_ - trial.started < trial.left) {
      ++lost_;
      trial.left -= now_ - trial.started;
      put(id, false);
      return;
    }
    outcome.end = seconds(now_ - kStart);
    ++outcome.completed;
    levels_[trial.sweep][static_cast<int>(trial.place) % plans_[trial.sweep].levels].completed = true;
    if (canary_[trial.sweep]) put_sweep(trial.sweep, false);
    if (const auto change = quarantine_.completed(name_of(trial.session), {id_of(trial.sweep)}))
      confine({*change});
    trial.over = true;
    ++measured_[trial.sweep].trials, measured_[trial.sweep].seconds += seconds(now_ - trial.started);
    if (const auto look = looks_.find(++completed_); look != looks_.end()) look->second();
    queue_.erase(id);
  }

  const int gpus_;
  WorkQueue queue_;
  Fleet fleet_;
  LeasePolicy policy_;
  Time now_ = kStart;
  std::vector<SweepPlan> plans_;
  std::vector<Outcome> outcomes_;
  struct Measured {
    int trials = 0;
    double seconds = 0;
  };
  std::vector<Measured> measured_;  // by sweep
  std::map<std::size_t, std::function<void()>> looks_;
  std::size_t completed_ = 0;
  std::vector<Trial> trials_;
  std::unordered_map<storage::RunId, storage::TrialId> trial_of_run_;
  std::priority_queue<Event> events_;
  std::minstd_rand random_{11};
  double loss_ = 0;
  std::set<std::uint64_t> broken_;  // sessions
  Quarantine quarantine_{policy_.quarantine};
  std::map<std::size_t, bool> canary_;                  // by sweep
  std::map<std::size_t, std::map<int, Level>> levels_;  // by sweep; -1: all of it
  std::size_t quarantined_ = 0;
  std::uint64_t next_event_ = 0;
  storage::RunId next_run_ = 1;
  std::size_t preempted_ = 0, lost_ = 0;
};

/// So many lengths between 10 and 60 minutes.
inline std::vector<Simulator::Seconds> lengths_of(int trials, unsigned seed = 1) {
  std::minstd_rand random{seed};
  std::vector<Simulator::Seconds> lengths;
  for (int i = 0; i < trials; ++i) lengths.emplace_back(std::uniform_int_distribution{600, 3600}(random));
  return lengths;
}

/// Jain's index: 1 where all have the same, 1 / n where one has everything.
inline double jain(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double squares = std::inner_product(shares.begin(), shares.end(), shares.begin(), 0.0);
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace abl::scheduler
