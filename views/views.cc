// SPDX-License-Identifier: Apache-2.0
#include "views/views.h"

#include <algorithm>
#include <map>
#include <utility>

#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/eta.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;
using storage::TrialState;

v1::SweepSummary summary_of(const storage::SweepRecord& sweep, std::optional<double> eta) {
  v1::SweepSummary message;
  message.set_name(sweep.name);
  message.set_state(state_of(sweep));
  *message.mutable_trials() = to_proto(sweep.trials);
  message.set_rows(sweep.rows);
  message.set_seeds(sweep.seeds);
  message.set_priority(sweep.priority);
  message.set_owner(sweep.owner);
  message.set_weight(sweep.weight);
  message.set_preempts(sweep.preempts);
  message.set_max_running(sweep.max_running.value_or(0));
  *message.mutable_created() = to_proto(sweep.created);
  if (sweep.finished) *message.mutable_finished() = to_proto(*sweep.finished);
  if (eta && sweep.state == storage::SweepState::kActive) message.set_eta_seconds(*eta);
  return message;
}

/// When sweeps will be complete. Of a short one every trial is looked at; of others those that run and some
/// that ran last, which are looked up once for all.
class Etas {
 public:
  explicit Etas(storage::Database& db) : sweeps_{db} {}

  std::optional<double> of(const storage::SweepRecord& sweep) {
    constexpr std::uint32_t kShort = 200;
    if (sweep.trials.leased + sweep.trials.running == 0) return std::nullopt;
    if (sweep.trials.total() <= kShort) return sweep_eta(sweeps_.paces(sweep.id));
    if (!newest_) newest_ = sweeps_.newest_paces();
    const std::vector<storage::Pace>& paces = (*newest_)[sweep.id];
    const auto seen = static_cast<std::uint32_t>(std::ranges::count_if(paces, [](const auto& pace) {
      return pace.state == TrialState::kQueued || pace.state == TrialState::kLeased ||
             pace.state == TrialState::kRunning;
    }));
    return sweep_eta(paces, sweep.trials.open() - std::min(seen, sweep.trials.open()));
  }

 private:
  const storage::SweepStore sweeps_;
  std::optional<std::map<storage::SweepId, std::vector<storage::Pace>>> newest_;
};

}  // namespace

v1::SweepSummary sweep_summary(storage::Database& db, const storage::SweepRecord& sweep) {
  return std::move(sweep_summaries(db, {sweep}).front());
}

std::vector<v1::SweepSummary> sweep_summaries(storage::Database& db,
                                              const std::vector<storage::SweepRecord>& sweeps) {
  Etas etas{db};
  std::vector<v1::SweepSummary> messages;
  for (const auto& sweep : sweeps) messages.push_back(summary_of(sweep, etas.of(sweep)));
  return messages;
}

v1::RunSummary run_summary(storage::Database& db, const storage::RunRecord& run, std::uint32_t most_metrics) {
  v1::RunSummary message = to_proto(run);
  for (const auto& position : storage::SweepStore{db}.positions(run.trial)) {
    auto* row = message.add_rows();
    row->set_sweep(position.sweep);
    row->set_row(position.row);
    row->set_label(position.label);
    row->set_seed(position.seed);
  }
  const storage::MetricStore metrics{db};
  for (const auto& metric : metrics.summaries(run.id, most_metrics))
    *message.add_metrics() = to_proto(metric);
  if (static_cast<std::uint32_t>(message.metrics_size()) == most_metrics)
    message.set_metrics_left_out(metrics.count(run.id) - most_metrics);
  return message;
}

PointBlocks::PointBlocks(storage::Database& db, const std::string& sweep)
    : sweep_{storage::SweepStore{db}.get_brief(sweep).id} {}

/// The runs of the next rows, where there are any.
bool PointBlocks::read_rows(storage::Database& db) {
  constexpr std::uint32_t kTrials = 1000;
  while (sources_.empty() && next_row_) {
    const auto claims =
        storage::SweepStore{db}.claims(sweep_, {.first = *next_row_, .most_trials = kTrials, .values = 0});
    next_row_.reset();
    if (!claims.empty()) next_row_ = static_cast<std::uint32_t>(claims.back().row) + 1;
    for (const auto& claim : claims)
      if (claim.run) sources_.push_back({claim.row_id, claim.seed, claim.trial, *claim.run});
  }
  return !sources_.empty();
}

std::optional<v1::ExportBlock> PointBlocks::next(storage::Database& db) {
  constexpr std::size_t kPoints = 10'000;
  const storage::MetricStore store{db};
  for (; read_rows(db); sources_.pop_front(), named_ = false) {
    const Source& source = sources_.front();
    if (!std::exchange(named_, true)) {
      const auto names = store.names(source.run);
      names_.assign(names.rbegin(), names.rend());
    }
    for (; !names_.empty(); names_.pop_back(), after_step_ = -1) {
      const storage::Series page = store.page(source.run, names_.back(), after_step_, kPoints);
      if (page.steps.empty()) continue;
      after_step_ = page.steps.back();
      v1::ExportBlock block;
      block.set_row(source.row);
      block.set_seed(source.seed);
      block.set_trial(source.trial);
      block.set_run(source.run);
      *block.mutable_series() = to_proto(page);
      return block;
    }
  }
  return std::nullopt;
}

void export_points(storage::Database& db, const std::string& sweep,
                   const std::function<void(const v1::ExportBlock&)>& sink) {
  PointBlocks blocks{db, sweep};
  while (const auto block = blocks.next(db)) sink(*block);
}

}  // namespace abl::views
