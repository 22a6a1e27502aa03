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
#include <string>
#include <vector>

#include "scheduler/dispatch.h"
#include "scheduler/fleet.h"
#include "scheduler/work_queue.h"

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
  };

  /// What became of a sweep.
  struct Outcome {
    std::vector<double> waits;  ///< of its trials, from their arrival to their first start, in seconds
    double first_start = 0, end = 0;
    double gpu_seconds = 0;                  ///< used, lost work among it
    std::map<std::int64_t, double> by_hour;  ///< of these, in each hour
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
  }

  void submit(SweepPlan plan) {
    events_.push(
        {now_ + plan.arrives, next_event_++, Kind::kSubmit, static_cast<std::uint32_t>(plans_.size()), 0});
    plans_.push_back(std::move(plan));
    outcomes_.emplace_back();
  }
  /// Each run ends after a random part of its length with this chance, and its trial goes back to the queue:
  /// a worker that died, say.
  void lose(double chance) { loss_ = chance; }

  /// Until nothing is left.
  void run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (event.kind == Kind::kSubmit)
        arrive(event.subject);
      else
        end(event.subject, event.run, event.kind == Kind::kLoss);
      while (!events_.empty() && events_.top().time == now_) {  // one look for all that happened at once
        const Event other = events_.top();
        events_.pop();
        if (other.kind == Kind::kSubmit)
          arrive(other.subject);
        else
          end(other.subject, other.run, other.kind == Kind::kLoss);
      }
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

 private:
  enum class Kind { kEnd, kLoss, kSubmit };
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
    bool has_waited = false;
  };
  static constexpr Time kStart{std::chrono::hours{1000}};
  static double seconds(Milliseconds time) { return static_cast<double>(time.count()) / 1000; }

  void arrive(std::uint32_t sweep) {
    const SweepPlan& plan = plans_[sweep];
    queue_.put_shape(static_cast<storage::ShapeId>(plan.gpus), {.gpus = plan.gpus, .result_version = 1});
    queue_.put_sweep({.id = sweep + 1,
                      .priority = plan.priority,
                      .owner = plan.owner,
                      .weight = plan.weight,
                      .preempts = plan.preempts});
    for (std::uint32_t i = 0; i < plan.lengths.size(); ++i) {
      trials_.push_back({.sweep = sweep, .place = i, .left = plan.lengths[i], .arrived = now_});
      put(static_cast<storage::TrialId>(trials_.size()), false);
    }
  }
  void put(storage::TrialId id, bool under_way) {
    const Trial& trial = trials_[id - 1];
    queue_.put({.id = id,
                .shape = static_cast<storage::ShapeId>(plans_[trial.sweep].gpus),
                .under_way = under_way,
                .claims = {{static_cast<storage::SweepId>(trial.sweep + 1), trial.place, 0}}},
               now_);
  }
  void dispatch() {
    Picks picked = pick(queue_, fleet_, policy_);
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
    trial_of_run_[trial.run] = pick.demand.trial;
    put(pick.demand.trial, true);
    fleet_.occupy(pick.placement.session, trial.run, pick.placement.slots,
                  {.priority = pick.priority, .resumable = true}, now_);
    const bool lost = std::bernoulli_distribution{loss_}(random_);
    Milliseconds length = trial.left;
    if (lost)
      length = Milliseconds{static_cast<std::int64_t>(static_cast<double>(length.count()) *
                                                      std::uniform_real_distribution{}(random_))};
    events_.push(
        {now_ + length, next_event_++, lost ? Kind::kLoss : Kind::kEnd, pick.demand.trial, trial.run});
  }
  void end(storage::TrialId id, storage::RunId run, bool again) {
    Trial& trial = trials_[id - 1];
    if (trial.run != run) return;  // it was over before
    trial.run = 0;
    trial_of_run_.erase(run);
    fleet_.release(run, now_);
    Outcome& outcome = outcomes_[trial.sweep];
    for (Time from = trial.started; from < now_;) {
      const std::int64_t hour = std::chrono::duration_cast<std::chrono::hours>(from - kStart).count();
      const Time to = std::min<Time>(now_, kStart + std::chrono::hours{hour + 1});
      outcome.by_hour[hour] += seconds(to - from) * plans_[trial.sweep].gpus;
      from = to;
    }
    outcome.gpu_seconds += seconds(now_ - trial.started) * plans_[trial.sweep].gpus;
    if (again && now_ - trial.started < trial.left) {
      ++lost_;
      trial.left -= now_ - trial.started;
      put(id, false);
      return;
    }
    outcome.end = seconds(now_ - kStart);
    queue_.erase(id);
  }

  const int gpus_;
  WorkQueue queue_;
  Fleet fleet_;
  LeasePolicy policy_;
  Time now_ = kStart;
  std::vector<SweepPlan> plans_;
  std::vector<Outcome> outcomes_;
  std::vector<Trial> trials_;
  std::unordered_map<storage::RunId, storage::TrialId> trial_of_run_;
  std::priority_queue<Event> events_;
  std::minstd_rand random_{11};
  double loss_ = 0;
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
