// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "ablate/v1/pages.pb.h"
#include "storage/measured_store.h"
#include "views/read.h"
#include "views/waiting.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::OpenStanding;
using storage::Statement;

constexpr std::uint32_t kMostOpen = 1000, kSweepsInQueue = 50;
constexpr std::uint32_t kTrialsShown = 50;
/// The first trials are looked for in so many sweeps, each of so many trials at most: the look passes over
/// all trials that have ended.
constexpr std::size_t kSweepsLookedInto = 20;
constexpr std::uint32_t kMostPassedOver = 5000;

/// A sweep of which something waits.
struct QueuePlace {
  OpenStanding standing;
  double slots = 0;                   ///< that its runs have
  std::deque<v1::QueuedTrial> first;  ///< in the order in which they are leased
};
using Owners = std::map<std::string, double>;  // slots in use

/// The first trials of a sweep: the first seed of every row before any second one, those of a rule last.
std::deque<v1::QueuedTrial> first_of_sweep(Database& db, const OpenStanding& sweep) {
  std::deque<v1::QueuedTrial> trials;
  for (auto& trial : db.prepared(R"sql(
          SELECT t.id, r.id, r.label, first.seed, MAX(1, t.gpus), w.reason
          FROM (SELECT st.sweep_id, st.row, st.seed_index, st.turn, st.seed, st.trial_id FROM sweep_trial st
                CROSS JOIN trial t ON t.id = st.trial_id AND t.state = 'queued' AND t.awaits = 0
                WHERE st.sweep_id = :sweep AND st.withdrawn = 0
                ORDER BY st.turn, st.seed_index, st.row LIMIT :most) first
          CROSS JOIN trial t ON t.id = first.trial_id
          CROSS JOIN sweep_row r ON r.sweep_id = first.sweep_id AND r.position = first.row
          CROSS JOIN trial_waiting w ON w.trial = t.id ORDER BY first.turn, first.seed_index, first.row)sql")
                         .bind(":sweep", sweep.id)
                         .bind(":most", kTrialsShown)
                         .all([&](const Statement& row) {
                           v1::QueuedTrial found;
                           found.set_trial(static_cast<std::uint32_t>(row.integer(0)));
                           found.set_sweep(sweep.name);
                           found.set_row(row.text(1));
                           found.set_label(row.text(2));
                           found.set_seed(row.integer(3));
                           found.set_slots(static_cast<std::uint32_t>(row.integer(4)));
                           found.set_reason(row.text(5));
                           return found;
                         }))
    trials.push_back(std::move(trial));
  return trials;
}

/// The same number of placeholders, for a sweep that is not looked into: each stands for some trial of it.
std::deque<v1::QueuedTrial> any_of_sweep(const OpenStanding& sweep) {
  v1::QueuedTrial trial;
  trial.set_sweep(sweep.name);
  trial.set_slots(1);
  return std::deque<v1::QueuedTrial>(std::min(sweep.queued, kTrialsShown), trial);
}

/// The lowest gets the next slots: the highest priority, the owner with the fewest slots, of the owner's
/// sweeps the one with the fewest for its weight, then the oldest. (Among equals the scheduler takes the one
/// that was served longest ago, which only it knows.)
auto turn_of(const QueuePlace& place, const Owners& owners) {
  return std::tuple{-place.standing.priority, owners.at(place.standing.owner),
                    place.slots / place.standing.weight, place.standing.id};
}

struct Kept {
  bool canary = false;
  std::uint32_t trials = 0;
};
Kept kept_of(Database& db, storage::SweepId sweep) {
  return db
      .prepared(
          R"sql(SELECT s.canary, n.queued + n.leased + n.running + n.completed + n.failed + n.held + n.cancelled
                      FROM sweep s JOIN sweep_count n ON n.sweep_id = s.id WHERE s.id = :sweep)sql")
      .bind(":sweep", sweep)
      .one([](const Statement& row) {
        return Kept{row.integer(0) != 0, static_cast<std::uint32_t>(row.integer(1))};
      })
      .value_or(Kept{});
}

v1::QueuedSweep sweep_of(Database& db, const QueuePlace& place, bool canary, std::uint32_t looked_at) {
  v1::QueuedSweep message;
  message.set_sweep(place.standing.name);
  message.set_owner(place.standing.owner);
  message.set_priority(place.standing.priority);
  message.set_weight(place.standing.weight);
  message.set_waiting(place.standing.queued);
  message.set_slots(static_cast<std::uint32_t>(place.slots));
  message.set_max_running(place.standing.max_running.value_or(0));
  message.set_preempts(place.standing.preempts);
  message.set_canary(canary);
  for (auto& reason : waiting_reasons(db, place.standing, looked_at))
    *message.add_reasons() = std::move(reason);
  return message;
}

/// The next trials of all sweeps, as if slots became free one by one and nothing ended.
void add_next(std::vector<QueuePlace> places, Owners owners, v1::QueueResponse& message) {
  std::set<std::uint32_t> seen;  // a trial that several sweeps want is leased once
  while (message.next_size() < static_cast<int>(kTrialsShown)) {
    QueuePlace* next = nullptr;
    for (QueuePlace& place : places) {
      const OpenStanding& sweep = place.standing;
      if (place.first.empty() || (sweep.max_running && sweep.under_way >= *sweep.max_running)) continue;
      if (!next || turn_of(place, owners) < turn_of(*next, owners)) next = &place;
    }
    if (!next) return;
    QueuePlace& place = *next;
    v1::QueuedTrial trial = std::move(place.first.front());
    place.first.pop_front();
    if (trial.trial() != 0 && !seen.insert(trial.trial()).second) continue;
    place.slots += trial.slots();
    owners.at(place.standing.owner) += trial.slots();
    ++place.standing.under_way;
    *message.add_next() = std::move(trial);
  }
}

v1::QueueResponse queue(Database& db) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  v1::QueueResponse message;
  const storage::MeasuredStore store{db};
  const auto running = store.running();
  std::vector<QueuePlace> places;
  Owners owners;
  for (auto& standing : store.open(kMostOpen)) {  // by priority
    double slots = 0;
    if (const auto own = running.find(standing.id); own != running.end())
      for (const auto& run : own->second) slots += std::max(1, run.gpus);
    owners[standing.owner] += slots;
    if (standing.queued == 0) continue;
    message.set_waiting(message.waiting() + standing.queued);
    if (places.size() < kSweepsInQueue)
      places.push_back({.standing = std::move(standing), .slots = slots, .first = {}});
    else
      message.set_sweeps_left_out(message.sweeps_left_out() + 1);
  }
  std::ranges::sort(places, {}, [&](const QueuePlace& place) { return turn_of(place, owners); });
  std::uint32_t unknown = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    QueuePlace& place = places[i];
    const Kept kept = kept_of(db, place.standing.id);
    *message.add_sweeps() = sweep_of(db, place, kept.canary, trials_looked_at(places.size()));
    const bool is_looked_into = kept.trials <= kMostPassedOver && i < kSweepsLookedInto;
    place.first = is_looked_into ? first_of_sweep(db, place.standing) : any_of_sweep(place.standing);
    unknown += !is_looked_into;
  }
  add_next(std::move(places), std::move(owners), message);
  if (unknown > 0)
    message.add_notes(fmt::format(
        "{} sweep{} listed without {} next trials: only the first {} sweeps, of at most {} trials each, are "
        "looked into",
        unknown, unknown == 1 ? " is" : "s are", unknown == 1 ? "its" : "their", kSweepsLookedInto,
        kMostPassedOver));
  return message;
}

}  // namespace

extern const Read kQueueRead{
    .path = "queue",
    .about = "Waiting sweeps in the order in which they get slots (50 at most), and the next 50 trials",
    .message = v1::QueueResponse::descriptor,
    .answer = [](const Query&, const Stored& stored) { return to_json(queue(stored.db)); },
};

}  // namespace abl::views
