// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "ablate/v1/pages.pb.h"
#include "storage/measured_store.h"
#include "storage/sweep_store.h"
#include "views/eta.h"
#include "views/read.h"
#include "views/waiting.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::Statement;

constexpr std::uint32_t kSweepsShown = 50;
constexpr std::size_t kRunsShown = 100;
/// Runs under way are as many as there are slots, and a few leased ahead: more than that are not looked at.
constexpr std::uint32_t kMostUnderWay = 5000;
constexpr int kMostNotes = 20;

struct UnderWay {
  v1::RunUnderWay run;
  double left = std::numeric_limits<double>::infinity();  // where nobody knows
};

/// Runs under way, the least time left first.
std::vector<UnderWay> runs_under_way(Database& db) {
  auto runs = db.prepared(R"sql(
      SELECT run.id, t.id, run.state = 'running', run.worker, run.step, run.total_steps, run.steps_per_second, t.seed
      FROM run INDEXED BY run_under_way CROSS JOIN trial t ON t.id = run.trial_id AND t.run_id = run.id
      WHERE run.state IN ('leased', 'running') LIMIT :most)sql")
                  .bind(":most", kMostUnderWay)
                  .all([](const Statement& row) {
                    UnderWay under_way;
                    v1::RunUnderWay& run = under_way.run;
                    const bool is_running = row.integer(2) != 0;
                    run.set_run(static_cast<std::uint32_t>(row.integer(0)));
                    run.set_trial(static_cast<std::uint32_t>(row.integer(1)));
                    run.set_state(is_running ? v1::RUN_STATE_RUNNING : v1::RUN_STATE_LEASED);
                    run.set_worker(row.text(3));
                    run.set_step(static_cast<std::uint32_t>(row.integer(4)));
                    run.set_total_steps(static_cast<std::uint32_t>(row.integer(5)));
                    run.set_steps_per_second(row.real(6));
                    run.set_seed(row.integer(7));
                    if (const auto eta = trial_eta({.trial = run.trial(),
                                                    .state = is_running ? storage::TrialState::kRunning
                                                                        : storage::TrialState::kLeased,
                                                    .step = run.step(),
                                                    .total_steps = run.total_steps(),
                                                    .steps_per_second = run.steps_per_second()})) {
                      run.set_eta_seconds(*eta);
                      under_way.left = *eta;
                    }
                    return under_way;
                  });
  std::ranges::sort(runs, [](const UnderWay& a, const UnderWay& b) {
    if (a.run.state() != b.run.state()) return a.run.state() == v1::RUN_STATE_RUNNING;
    return a.left != b.left ? a.left < b.left : a.run.run() < b.run.run();
  });
  return runs;
}

void add_runs(Database& db, v1::OverviewResponse& message) {
  const auto runs = runs_under_way(db);
  const std::size_t shown = std::min(runs.size(), kRunsShown);
  auto& place = db.prepared(R"sql(
      SELECT s.name, r.id, r.label, st.seed FROM sweep_trial st INDEXED BY sweep_trial_trial
      CROSS JOIN sweep s ON s.id = st.sweep_id CROSS JOIN sweep_row r ON r.sweep_id = st.sweep_id AND r.position = st.row
      WHERE st.trial_id = :trial ORDER BY st.withdrawn, s.id LIMIT 1)sql");
  for (const UnderWay& under_way : std::span{runs}.first(shown)) {
    v1::RunUnderWay& run = *message.add_running() = under_way.run;
    place.bind(":trial", run.trial()).one([&](const Statement& row) {
      run.set_sweep(row.text(0));
      run.set_row(row.text(1));
      run.set_label(row.text(2));
      run.set_seed(row.integer(3));
      return true;
    });
  }
  message.set_running_left_out(static_cast<std::uint32_t>(runs.size() - shown));
}

/// Slots by what they are, and what keeps workers from taking trials.
void add_workers(Database& db, v1::OverviewResponse& message) {
  std::map<std::string, v1::SlotsInUse> by_name;
  const auto list = list_workers(db);
  for (const auto& worker : list.workers()) {
    message.set_workers(message.workers() + 1);
    if (!worker.connected()) continue;
    message.set_workers_connected(message.workers_connected() + 1);
    for (const auto& slot : worker.slots()) {
      auto& slots = by_name[slot.name().empty() ? slot.device() : slot.name()];
      slots.set_slots(slots.slots() + 1);
      slots.set_busy(slots.busy() + (slot.run() != 0 ? 1U : 0U));
    }
    if (worker.note().empty() || message.notes_size() == kMostNotes) continue;
    auto& note = *message.add_notes();
    note.set_worker(worker.name());
    note.set_note(worker.note());
  }
  for (auto& [name, slots] : by_name) {
    slots.set_name(name);
    *message.add_slots() = std::move(slots);
  }
}

v1::OverviewResponse overview(Database& db) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  v1::OverviewResponse message;
  const auto open = storage::MeasuredStore{db}.open(kSweepsShown);
  std::vector<storage::SweepRecord> sweeps;
  std::vector<v1::WaitingReason> waiting;
  for (const auto& standing : open) {
    sweeps.push_back(storage::SweepStore{db}.get_brief(standing.name));
    std::ranges::move(waiting_reasons(db, standing, trials_looked_at(open.size())),
                      std::back_inserter(waiting));
  }
  for (auto& summary : sweep_summaries(db, sweeps)) *message.add_sweeps() = std::move(summary);
  const auto active =
      db.prepared(
            R"sql(SELECT COUNT(*) FROM sweep_count n CROSS JOIN sweep s ON s.id = n.sweep_id AND s.state = 'active'
                                        WHERE n.queued + n.leased + n.running > 0)sql")
          .one([](const Statement& row) { return static_cast<std::uint32_t>(row.integer(0)); })
          .value_or(0);
  message.set_sweeps_left_out(active - static_cast<std::uint32_t>(sweeps.size()));
  std::ranges::stable_sort(waiting, std::ranges::greater{}, &v1::WaitingReason::trials);
  for (auto& reason : waiting) *message.add_waiting() = std::move(reason);
  add_runs(db, message);
  add_workers(db, message);
  return message;
}

}  // namespace

extern const Read kOverviewRead{
    .path = "overview",
    .about =
        "Active sweeps with forecasts (50 at most), runs under way (100 at most), why trials wait, and slots "
        "in use",
    .message = v1::OverviewResponse::descriptor,
    .answer = [](const Query&, const Stored& stored) { return to_json(overview(stored.db)); },
};

}  // namespace abl::views
