// SPDX-License-Identifier: Apache-2.0
#include "views/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "storage/metric_store.h"
#include "storage/part_store.h"
#include "storage/sweep_store.h"
#include "views/convert.h"
#include "views/forecast.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;
using storage::TrialState;

/// A search has no trials of its own: those of its points are all there is.
bool is_search(const storage::SweepRecord& sweep) { return sweep.tuning && sweep.seeds == 0; }
const storage::TrialCounts& trials_of(const storage::SweepRecord& sweep) {
  return is_search(sweep) ? sweep.tuning->trials : sweep.trials;
}
/// The sweep that has them.
storage::SweepId with_trials(const storage::SweepRecord& sweep) {
  return is_search(sweep) ? sweep.tuning->by : sweep.id;
}

/// Whether something of it waits or runs.
bool has_forecast(const storage::SweepRecord& sweep) {
  return sweep.state == storage::SweepState::kActive && trials_of(sweep).open() > 0;
}

/// How finely a forecast is told. Rounded, it stays the same in answers where nothing else has changed.
double step_of(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return 5;
  if (seconds < 10 * kMinute) return 30;
  if (seconds < 2 * kHour) return 2 * kMinute;
  return seconds < 24 * kHour ? 15 * kMinute : kHour;
}

/// Rounds a forecast to its step: at least one step is left.
void round_to_steps(v1::Forecast& forecast) {
  if (!forecast.has_seconds() || !std::isfinite(forecast.seconds())) return;
  const double step = step_of(forecast.seconds());
  forecast.set_seconds(std::max(step, step * std::round(forecast.seconds() / step)));
  if (!forecast.has_complete()) return;
  const auto every = static_cast<std::int64_t>(step);
  const std::int64_t at = forecast.complete().seconds();
  forecast.mutable_complete()->set_seconds((at + every / 2) / every * every);
  forecast.mutable_complete()->set_nanos(0);
}

/// Of a sweep whose budget ends before it would be complete: that, in place of a date. By the slots that it
/// gets on the average, and the GPUs of its trials.
std::optional<v1::Forecast> within_budget(storage::Database& db, const storage::SweepRecord& sweep,
                                          std::optional<v1::Forecast> forecast, Time now) {
  if (!forecast || !forecast->has_seconds()) return forecast;
  double left = forecast->seconds();
  std::string why;
  if (!sweep.spent.empty()) left = 0, why = sweep.spent;
  if (sweep.budget.until && why.empty())
    if (const double time = static_cast<double>((*sweep.budget.until - now).count()) / 1000; time < left)
      left = std::max(0.0, time), why = "it may run until then";
  if (sweep.budget.gpu_time && sweep.spent.empty() && forecast->at_once() > 0) {
    const auto gpus = db.prepared(R"sql(SELECT t.gpus FROM sweep_trial st JOIN trial t ON t.id = st.trial_id
                                        WHERE st.sweep_id = :sweep LIMIT 1)sql")
                          .bind(":sweep", with_trials(sweep))
                          .one([](const storage::Statement& row) { return row.integer(0); })
                          .value_or(0);
    const double granted = static_cast<double>((*sweep.budget.gpu_time - sweep.gpu_time).count()) / 1000;
    const double time = granted / forecast->at_once() / static_cast<double>(std::max<std::int64_t>(1, gpus));
    if (time < left)
      left = std::max(0.0, time),
      why = fmt::format("its {:.4g} GPU hours will have been used by then",
                        static_cast<double>(sweep.budget.gpu_time->count()) / 3.6e6);
  }
  if (why.empty()) return forecast;
  const double share = forecast->seconds() > 0 ? left / forecast->seconds() : 0;
  forecast->set_unknown(
      sweep.spent.empty()
          ? fmt::format("the budget ends first, in {:.0f} min, with about {:.0f} % of what is left "
                        "done: {}",
                        left / 60, 100 * share, why)
          : why);
  forecast->clear_seconds();
  forecast->clear_complete();
  return forecast;
}

}  // namespace

v1::SweepSummary sweep_summary(const storage::SweepRecord& sweep, std::optional<v1::Forecast> forecast) {
  v1::SweepSummary message;
  message.set_name(sweep.name);
  message.set_state(state_of(sweep));
  *message.mutable_trials() = to_proto(trials_of(sweep));
  message.set_rows(sweep.rows);
  message.set_seeds(sweep.seeds);
  if (!sweep.seeds_rule.empty())
    message.set_seeds_min(nlohmann::json::parse(sweep.seeds_rule).at("min").get<std::uint32_t>());
  message.set_priority(sweep.priority);
  message.set_owner(sweep.owner);
  message.set_weight(sweep.weight);
  message.set_preempts(sweep.preempts);
  message.set_breaker(sweep.breaker);
  message.set_canary(sweep.canary);
  for (const std::string& held : sweep.holds) message.add_holds(held);
  message.set_max_running(sweep.max_running.value_or(0));
  *message.mutable_created() = to_proto(sweep.created);
  if (sweep.finished) *message.mutable_finished() = to_proto(*sweep.finished);
  if (sweep.budget.gpu_time)
    message.mutable_budget()->set_max_gpu_hours(static_cast<double>(sweep.budget.gpu_time->count()) / 3.6e6);
  if (sweep.budget.until) *message.mutable_budget()->mutable_until() = to_proto(*sweep.budget.until);
  message.set_gpu_hours(static_cast<double>(sweep.gpu_time.count()) / 3.6e6);
  message.set_spent(sweep.spent);
  message.set_revision(sweep.revision);
  if (sweep.tuning) {
    auto& tuning = *message.mutable_tuning();
    tuning.set_sweep(sweep.tuning->name);
    *tuning.mutable_trials() = to_proto(sweep.tuning->trials);
    tuning.set_rows(sweep.tuning->rows);
    tuning.set_open(sweep.tuning->open);
    tuning.set_failed(sweep.tuning->failed);
  }
  message.set_tunes(sweep.tunes);
  for (const std::string& tag : sweep.tags) message.add_tags(tag);
  message.set_pinned(sweep.pinned);
  message.set_archived(sweep.archived.has_value());
  if (forecast && has_forecast(sweep)) {
    round_to_steps(*forecast);
    if (forecast->has_seconds()) message.set_eta_seconds(forecast->seconds());
    *message.mutable_forecast() = *std::move(forecast);
  }
  return message;
}

v1::SweepSummary sweep_summary(storage::Database& db, const storage::SweepRecord& sweep, Time now) {
  return std::move(sweep_summaries(db, {sweep}, now).front());
}

std::vector<v1::SweepSummary> sweep_summaries(storage::Database& db,
                                              const std::vector<storage::SweepRecord>& sweeps, Time now) {
  std::set<storage::SweepId> asked;
  for (const auto& sweep : sweeps)
    if (has_forecast(sweep)) asked.insert(with_trials(sweep));
  std::optional<Forecasts> forecasts;
  if (!asked.empty()) forecasts.emplace(db, asked, now);
  std::vector<v1::SweepSummary> messages;
  for (const auto& sweep : sweeps)
    messages.push_back(sweep_summary(
        sweep, has_forecast(sweep) ? within_budget(db, sweep, forecasts->of(with_trials(sweep)), now)
                                   : std::nullopt));
  return messages;
}

std::optional<v1::Forecast> forecast_of(storage::Database& db, const storage::SweepRecord& sweep, Time now) {
  if (!has_forecast(sweep)) return std::nullopt;
  const storage::SweepId id = with_trials(sweep);
  return within_budget(db, sweep, Forecasts{db, {id}, now}.of(id), now);
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
  for (const auto& part : storage::PartStore{db}.of(run.id)) {
    auto* other = message.add_parts();
    other->set_worker(part.worker);
    other->set_host(part.host);
    other->set_slots(static_cast<std::uint32_t>(part.slots.size()));
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
