// SPDX-License-Identifier: Apache-2.0
#include "views/views.h"

#include <utility>

#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/eta.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

v1::SweepSummary summary_of(const storage::SweepRecord& sweep, std::optional<double> eta) {
  v1::SweepSummary message;
  message.set_name(sweep.name);
  message.set_state(state_of(sweep));
  *message.mutable_trials() = to_proto(sweep.trials);
  message.set_rows(sweep.rows);
  message.set_seeds(sweep.seeds);
  message.set_priority(sweep.priority);
  *message.mutable_created() = to_proto(sweep.created);
  if (sweep.finished) *message.mutable_finished() = to_proto(*sweep.finished);
  if (eta && sweep.state == storage::SweepState::kActive) message.set_eta_seconds(*eta);
  return message;
}

}  // namespace

v1::SweepSummary sweep_summary(storage::Database& db, const storage::SweepRecord& sweep) {
  const bool may_have_eta =
      sweep.trials.leased + sweep.trials.running > 0;  // the others need no look at their trials
  return summary_of(sweep, may_have_eta ? sweep_eta(storage::SweepStore{db}.paces(sweep.id)) : std::nullopt);
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

PointBlocks::PointBlocks(storage::Database& db, const std::string& sweep) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::SweepStore sweeps{db};
  for (const auto& claim : sweeps.claims(sweeps.get(sweep).id))
    if (claim.run) sources_.push_back({claim.row_id, claim.seed, claim.trial, *claim.run});
}

std::optional<v1::ExportBlock> PointBlocks::next(storage::Database& db) {
  constexpr std::size_t kPoints = 10'000;
  const storage::MetricStore store{db};
  for (; !sources_.empty(); sources_.pop_front(), named_ = false) {
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
