// SPDX-License-Identifier: Apache-2.0
#include "launchers/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace abl::launchers {

std::string counted(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

namespace {

/// Trials of this kind that one worker of a queue runs at once; 0: none.
std::size_t at_once(const WaitingTrials& waiting, const QueueConfig& queue) {
  if (waiting.gpus > queue.gpus) return 0;
  return static_cast<std::size_t>(queue.slots / std::max(1, waiting.gpus));
}

/// One queue's look at what waits.
class Look {
 public:
  Look(std::size_t number, const QueueStanding& queue, std::vector<WaitingTrials>& waiting, Time now,
       Decisions& decisions)
      : number_{number},
        queue_{queue},
        config_{queue.config},
        waiting_{waiting},
        now_{now},
        decisions_{decisions} {}

  void decide() {
    std::size_t here = 0, too_long = 0;
    for (const WaitingTrials& kind : waiting_) {
      if (!kind.queues.contains(number_) || at_once(kind, config_) == 0) continue;
      (fits(kind) ? here : too_long) += kind.trials;
    }
    const double workers = needed();
    count_pilots();
    take_up(static_cast<double>(coming_));
    const double lacking = workers - static_cast<double>(coming_);

    std::string why = here == 0 ? "no trial waits for it"
                                : counted(here, "trial") + (here == 1 ? " waits" : " wait") + " for it";
    if (too_long > 0)
      why += fmt::format(", {} {} longer than its workers have ({} s, less {} s to start and to end)",
                         too_long, too_long == 1 ? "takes" : "take", config_.time_limit.count(),
                         start_and_end(config_.time_limit).count());
    why += "; " + grow(lacking, here);
    decisions_.why.push_back(why);
    shrink(workers, here);
  }

 private:
  bool has_limit() const { return config_.time_limit.count() > 0; }
  bool fits(const WaitingTrials& kind) const {
    return !has_limit() || kind.takes.count() == 0 ||
           kind.takes + start_and_end(config_.time_limit) <= config_.time_limit;
  }
  bool is_for_here(const WaitingTrials& kind) const {
    return kind.queues.contains(number_) && at_once(kind, config_) > 0 && fits(kind);
  }

  /// Whether a pilot has the time for something that waits.
  bool has_time(const PilotStanding& pilot) const {
    if (pilot.waits() || !has_limit()) return true;
    const auto left = config_.time_limit - pilot.pilot.ran - ends_early(config_.time_limit);
    return std::ranges::any_of(waiting_, [&](const WaitingTrials& kind) {
      return is_for_here(kind) &&
             left >= (kind.takes.count() > 0 ? kind.takes : worthwhile(config_.time_limit));
    });
  }

  /// Workers that all that waits would fill.
  double needed() const {
    double workers = 0;
    for (const WaitingTrials& kind : waiting_)
      if (is_for_here(kind))
        workers += static_cast<double>(kind.trials) / static_cast<double>(at_once(kind, config_));
    return workers;
  }

  void count_pilots() {
    for (const PilotStanding& pilot : queue_.pilots) {
      if (pilot.leaving) continue;
      ++live_;
      if (pilot.waits()) ++backlog_;
      // one that is idle may have what waits in a moment
      if (!pilot.connected || !pilot.busy) coming_ += has_time(pilot) ? 1 : 0;
    }
  }

  /// So many workers' worth of what waits is not the next queue's business.
  void take_up(double workers) {
    for (WaitingTrials& kind : waiting_) {
      if (!is_for_here(kind) || workers <= 0) continue;
      const double each = static_cast<double>(at_once(kind, config_));
      const double taken = std::min(static_cast<double>(kind.trials), std::floor(workers * each));
      kind.trials -= static_cast<std::size_t>(taken);
      workers -= taken / each;
    }
  }

  /// Hours that its live pilots may still use.
  double promised_hours() const {
    double hours = 0;
    for (const PilotStanding& pilot : queue_.pilots)
      hours += std::max(0.0, Seconds{config_.time_limit - pilot.pilot.ran}.count()) / 3600 * config_.gpus;
    return hours;
  }

  /// Submits what is needed and may be. Returns: what that comes to, in words.
  std::string grow(double lacking, std::size_t here) {
    const auto whole = static_cast<int>(std::max(0.0, std::floor(lacking)));
    const double rest = std::max(0.0, lacking) - whole;
    int wanted = whole + (rest > 0 && rest >= config_.min_utilisation ? 1 : 0);
    const int below = config_.min_workers - static_cast<int>(live_);
    const bool for_minimum = below > wanted;
    wanted = std::max(wanted, below);
    if (wanted <= 0)
      return rest > 0 && lacking > 0
                 ? fmt::format("they would use {:.0f} % of a worker, less than min_utilisation", rest * 100)
                 : fmt::format("it has {}", counted(live_, "pilot"));
    if (!queue_.paused.empty()) return "paused: " + queue_.paused;
    int most = wanted;
    std::string bound;
    const auto limit = [&](int allowed, std::string words) {
      if (allowed >= most) return;
      most = std::max(0, allowed);
      bound = std::move(words);
    };
    limit(config_.max_workers - static_cast<int>(live_),
          fmt::format("workers.max is {}", config_.max_workers));
    limit(config_.backlog - static_cast<int>(backlog_),
          fmt::format("{} of a backlog of {} waiting", backlog_, config_.backlog));
    if (config_.max_gpu_hours) {
      const double each = Seconds{config_.time_limit}.count() / 3600 * config_.gpus;
      const double left = *config_.max_gpu_hours - queue_.gpu_hours - promised_hours();
      limit(static_cast<int>(std::floor(std::max(0.0, left) / each + 1e-9)),
            fmt::format("{:.1f} of {:.1f} GPU hours are used or promised, and a pilot may take {:.1f}",
                        queue_.gpu_hours + promised_hours(), *config_.max_gpu_hours, each));
    }
    if (queue_.room) limit(queue_.room->pilots, queue_.room->why);
    if (most == 0) return fmt::format("{} more wanted, but {}", wanted, bound);
    const std::string why = for_minimum
                                ? fmt::format("workers.min is {}", config_.min_workers)
                                : fmt::format("{} {} for its workers and {} {} coming",
                                              counted(here, "trial"), here == 1 ? "waits" : "wait",
                                              counted(coming_, "worker"), coming_ == 1 ? "is" : "are");
    decisions_.all.push_back(
        {.kind = Decision::Kind::kSubmit,
         .queue = number_,
         .pilots = most,
         .reason = bound.empty() ? why : fmt::format("{}; no more, for {}", why, bound)});
    take_up(most);
    return fmt::format("{} {} submitted", counted(static_cast<std::size_t>(most), "pilot"),
                       most == 1 ? "is" : "are") +
           (bound.empty() ? "" : ", no more, for " + bound);
  }

  void cancel(std::vector<Pilot> which, std::string reason, bool fruitless = false) {
    if (which.empty()) return;
    decisions_.all.push_back({.kind = Decision::Kind::kCancel,
                              .queue = number_,
                              .which = std::move(which),
                              .reason = std::move(reason),
                              .fruitless = fruitless});
  }

  /// Ends what nobody needs, down to the minimum.
  void shrink(double workers, std::size_t here) {
    std::vector<Pilot> silent, idle, useless, overdue;
    std::vector<const PilotStanding*> waiting, resting;
    std::vector<Pilot> insist;
    for (const PilotStanding& pilot : queue_.pilots) {
      if (pilot.leaving && now_ - *pilot.leaving >= kTimeToLeave) {
        insist.push_back(pilot.pilot);
      } else if (pilot.leaving) {
        continue;
      } else if (pilot.waits()) {
        if (now_ - pilot.since >= config_.start_deadline)
          overdue.push_back(pilot.pilot);
        else
          waiting.push_back(&pilot);
      } else if (!pilot.connected && now_ - pilot.since >= kTimeToConnect) {
        silent.push_back(pilot.pilot);
      } else if (pilot.connected && !pilot.busy && now_ - pilot.idle_since >= config_.idle_timeout) {
        resting.push_back(&pilot);
      }
    }
    cancel(std::move(insist),
           fmt::format("told to end {} minutes ago and still there", kTimeToLeave.count()));
    const std::size_t given_up = overdue.size();
    cancel(std::move(overdue), fmt::format("waited for a machine for {} s, which is start_deadline",
                                           config_.start_deadline.count()));
    auto spare = static_cast<long>(live_ - given_up) - config_.min_workers - static_cast<long>(silent.size());
    cancel(std::move(silent),
           fmt::format("their workers have not been heard of for {} minutes", kTimeToConnect.count()), true);
    std::ranges::sort(resting, {}, &PilotStanding::idle_since);
    for (const PilotStanding* pilot : resting)
      if (spare-- > 0) idle.push_back(pilot->pilot);
    spare = std::max(0L, spare);
    const bool fruitless =
        here > 0 && std::ranges::any_of(resting, [&](const auto* pilot) { return has_time(*pilot); });
    const std::string for_so_long = fmt::format("nothing ran there for {} s", config_.idle_timeout.count());
    const auto ended = static_cast<double>(idle.size());
    cancel(std::move(idle),
           fruitless ? for_so_long + ", though trials wait that its workers could run" : for_so_long,
           fruitless);

    const bool cooling = queue_.last_submission && now_ - *queue_.last_submission < config_.cool_down;
    if (waiting.empty() || cooling) return;
    std::ranges::sort(waiting, [](const auto* a, const auto* b) {  // the newest first
      return std::pair{a->pilot.id.size(), a->pilot.id} > std::pair{b->pilot.id.size(), b->pilot.id};
    });
    auto surplus =
        std::min(spare, static_cast<long>(static_cast<double>(coming_) - ended - std::ceil(workers)));
    for (const PilotStanding* pilot : waiting)
      if (surplus-- > 0) useless.push_back(pilot->pilot);
    cancel(std::move(useless),
           here == 0
               ? "no trial waits any more"
               : fmt::format("only {} left to wait", counted(here, "trial") + (here == 1 ? " is" : " are")));
  }

  const std::size_t number_;
  const QueueStanding& queue_;
  const QueueConfig& config_;
  std::vector<WaitingTrials>& waiting_;
  const Time now_;
  Decisions& decisions_;
  std::size_t live_ = 0, backlog_ = 0, coming_ = 0;  // pilots
};

}  // namespace

Decisions decide(const std::vector<QueueStanding>& queues, std::vector<WaitingTrials> waiting, Time now) {
  Decisions decisions;
  for (std::size_t i = 0; i < queues.size(); ++i) Look{i, queues[i], waiting, now, decisions}.decide();
  return decisions;
}

std::string names_of(const std::vector<Pilot>& pilots) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, pilots.size()); ++i)
    text += (i > 0 ? ", " : "") + pilots[i].id;
  if (pilots.size() > kShown) text += fmt::format(" and {}", counted(pilots.size() - kShown, "other"));
  return text;
}

bool SubmissionPolicy::failed(Time now) {
  wait(now, ++failures_);
  return failures_ >= kFailures;
}

void SubmissionPolicy::unanswered(Time now) { wait(now, ++unanswered_); }

void SubmissionPolicy::wait(Time now, int times) {
  next_ = now + std::min(kLongestPause, kFirstPause * (1 << std::min(times - 1, 10)));
}

}  // namespace abl::launchers
