// SPDX-License-Identifier: Apache-2.0
#include "views/views.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "config/document/result_version.h"
#include "config/trial_config.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/table.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"
#include "views/convert.h"
#include "views/eta.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr int kLogTailLines = 100;
constexpr std::size_t kLogTailBytes = 64 << 10;
constexpr int kRunsListed = 1000;
/// Summaries of metrics in a list of runs; where there are more, each run has its share.
constexpr std::size_t kMostMetrics = 30'000, kLeastMetrics = 8;

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

/// A run with its place in the sweeps that claim its trial, and its metrics, at most so many.
v1::RunSummary full_summary(storage::Database& db, const storage::RunRecord& run,
                            std::uint32_t most_metrics = storage::MetricStore::kAll) {
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

/// Why a worker gets nothing, or not everything; empty when there is no reason.
std::string why_idle(const storage::WorkerRecord& worker) {
  if (!worker.connected) return "not connected";
  if (!worker.trouble.empty()) return worker.trouble;
  if (worker.result_version == 0)
    return worker.allows_commands ? "no trainer: it gets commands only"
                                  : "no trainer and no --allow-commands: it gets nothing";
  const int newest = config::newest_result_version();
  if (worker.result_version > newest)
    return fmt::format(
        "its trainer is newer (result version {}) than this release ({}): it gets commands at most",
        worker.result_version, newest);
  if (worker.result_version < newest)
    return fmt::format(
        "its trainer is of result version {}, this release of {}: it gets no trial that was "
        "changed in between",
        worker.result_version, newest);
  return {};
}

}  // namespace

v1::SweepSummary sweep_summary(storage::Database& db, const storage::SweepRecord& sweep) {
  const bool may_have_eta =
      sweep.trials.leased + sweep.trials.running > 0;  // the others need no look at their trials
  return summary_of(sweep, may_have_eta ? sweep_eta(storage::SweepStore{db}.paces(sweep.id)) : std::nullopt);
}

v1::ListSweepsResponse list_sweeps(storage::Database& db, const Page& page, const std::string& after) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::SweepStore store{db};
  const auto before = after.empty() ? storage::SweepStore::kNewest : store.get(after).id;
  v1::ListSweepsResponse message;
  for (const auto& sweep : store.list(page.first, page.count, before))
    *message.add_sweeps() = sweep_summary(db, sweep);
  const auto listed = static_cast<std::uint32_t>(message.sweeps_size());
  message.set_left_out(store.count() - listed);
  if (listed > 0 && page.first + listed < store.count(before))
    message.set_next(message.sweeps().rbegin()->name());
  return message;
}

v1::SweepDetail sweep_detail(storage::Database& db, const std::string& name, const Page& page) {
  const Transaction snapshot{db, Transaction::kRead};
  const auto sweep = storage::SweepStore{db}.get(name);
  v1::SweepDetail message = sweep_trials(db, sweep, page);
  *message.mutable_summary() = sweep_summary(db, sweep);
  message.set_text(sweep.text);
  message.set_file(sweep.file);
  return message;
}

v1::SweepDetail sweep_trials(storage::Database& db, const storage::SweepRecord& sweep, const Page& page) {
  const storage::SweepStore store{db};
  v1::SweepDetail message;
  const auto claims =
      store.claims(sweep.id, {.first = page.first, .count = page.count, .most_trials = page.most_trials});
  if (page.with_baseline)
    if (const auto row = store.row(sweep.id, sweep.baseline);
        row && std::ranges::find(claims, *row, &storage::ClaimRecord::row) == claims.end())
      for (const auto& claim :
           store.claims(sweep.id, {.first = static_cast<std::uint32_t>(*row), .count = 1}))
        *message.add_trials() = to_proto(claim);
  for (const auto& claim : claims) *message.add_trials() = to_proto(claim);
  if (const auto next = claims.empty() ? 0 : static_cast<std::uint32_t>(claims.back().row) + 1;
      next < sweep.rows)
    message.set_next(next);
  message.set_left_out(sweep.trials.total() - static_cast<std::uint32_t>(message.trials_size()));
  return message;
}

v1::Table table(storage::Database& db, const std::string& sweep) {
  return to_proto(storage::read_table(db, sweep));
}

v1::ListRunsResponse list_runs(storage::Database& db, const v1::ListRunsRequest& request) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore store{db};
  std::optional<storage::SweepId> sweep;
  if (!request.sweep().empty()) sweep = storage::SweepStore{db}.get(request.sweep()).id;
  std::optional<storage::TrialId> trial;
  if (request.trial() != 0) trial = store.get(request.trial()).id;
  if (request.limit() > kMostRunsListed)
    throw Error{Code::kInvalidArgument,
                fmt::format("limit {}: at most {} runs are listed at once; name a sweep or a trial",
                            request.limit(), kMostRunsListed)};
  const storage::WhichRuns which{.sweep = sweep, .trial = trial, .before = request.before()};
  const auto runs =
      store.list_runs(which, request.limit() == 0 ? kRunsListed : static_cast<int>(request.limit()));
  const auto share =
      std::max<std::size_t>(kLeastMetrics, kMostMetrics / std::max<std::size_t>(1, runs.size()));
  v1::ListRunsResponse message;
  for (const auto& run : runs) *message.add_runs() = full_summary(db, run, static_cast<std::uint32_t>(share));
  message.set_left_out(store.count_runs(which) - static_cast<std::uint32_t>(runs.size()));
  return message;
}

v1::RunDetail run_detail(storage::Database& db, storage::RunId id) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore store{db};
  const auto run = store.run(id);
  const auto trial = store.get(run.trial);
  v1::RunDetail message;
  *message.mutable_summary() = full_summary(db, run);
  message.set_config_json(trial.config);
  message.set_config_hash(trial.identity.config_hash);
  message.set_result_version(static_cast<std::uint32_t>(trial.identity.result_version));
  message.set_data_fingerprint(trial.identity.data_fingerprint);
  message.set_directory(run.directory);
  if (run.exit_code) message.set_exit_code(*run.exit_code);
  if (run.signal) message.set_signal(*run.signal);
  message.set_log_bytes(run.log_bytes);
  message.set_log_tail(valid_utf8(storage::MetricStore{db}.log_tail(id, kLogTailLines, kLogTailBytes)));
  for (const auto& checkpoint : store.checkpoints_of(run.trial))
    if (checkpoint.run == id) *message.add_checkpoints() = to_proto(checkpoint);
  for (const auto& attempt : store.runs_of(run.trial)) *message.add_attempts() = to_proto(attempt);
  message.set_environment_json(run.environment_json);
  if (trial.before_mend())
    for (auto& sentence : config::changes_since(trial.identity.result_version,
                                                nlohmann::json::parse(trial.config, nullptr, false)))
      message.add_before_mend(std::move(sentence));
  return message;
}

v1::GetMetricsResponse metrics(storage::Database& db, const v1::GetMetricsRequest& request,
                               std::uint64_t most_points) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore runs{db};
  const storage::MetricStore store{db};
  const std::vector<std::string> names{request.names().begin(), request.names().end()};
  const std::set<storage::RunId> wanted{request.runs().begin(), request.runs().end()};
  if (wanted.size() > std::size_t{kMostRunsMeasured})
    throw Error{Code::kInvalidArgument, fmt::format("{} runs: an answer has the metrics of {} at most",
                                                    wanted.size(), kMostRunsMeasured)};
  const auto count = [&](std::uint32_t max_points) {
    std::uint64_t points = 0;
    for (const auto id : wanted) points += store.points(id, names, max_points);
    return points;
  };
  for (const auto id : wanted) (void)runs.run(id);  // an unknown run is an error, not an empty answer
  std::uint32_t max_points = request.max_points();
  if (const std::uint64_t points = count(max_points); points > most_points) {
    const std::uint64_t series = count(1), each = most_points / std::max<std::uint64_t>(1, series);
    if (max_points == 0 || each < 2)
      throw Error{
          Code::kInvalidArgument,
          fmt::format(
              "{} metric points: an answer has {} at most; name fewer runs or metrics, thin them with "
              "max_points, or use 'ablate export'",
              points, most_points)};
    max_points = static_cast<std::uint32_t>(each);
  }
  v1::GetMetricsResponse message;
  if (max_points != request.max_points()) message.set_thinned_to(max_points);
  for (const auto id : wanted) {
    for (const auto& series : store.series(id, names, max_points)) {
      auto* entry = message.add_series();
      entry->set_run(id);
      *entry->mutable_series() = to_proto(series);
    }
  }
  return message;
}

v1::ListWorkersResponse list_workers(storage::Database& db) {
  const Transaction snapshot{db, Transaction::kRead};
  v1::ListWorkersResponse message;
  for (const auto& worker : storage::WorkerStore{db}.list()) {
    auto* summary = message.add_workers();
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    const std::string lists = "{\"slots\":" + (worker.slots_json.empty() ? "[]" : worker.slots_json) +
                              ",\"data\":" + (worker.data_json.empty() ? "[]" : worker.data_json) +
                              ",\"weights\":" + (worker.weights_json.empty() ? "[]" : worker.weights_json) +
                              "}";
    if (const auto status = google::protobuf::util::JsonStringToMessage(lists, summary, options);
        !status.ok())
      throw Error{Code::kDataLoss,
                  "worker '" + worker.name + "': its slots are not readable: " + status.ToString()};
    summary->set_name(worker.name);
    summary->set_host(worker.host);
    summary->set_connected(worker.connected);
    *summary->mutable_last_heartbeat() = to_proto(worker.last_heartbeat);
    for (const auto run : storage::TrialStore{db}.under_way_on(worker.name)) summary->add_runs(run);
    for (auto& slot : *summary->mutable_slots())  // stored when a run was assigned, not cleared when it ends
      if (std::ranges::find(summary->runs(), slot.run()) == summary->runs().end()) slot.set_run(0);
    summary->set_version(worker.version);
    summary->set_result_version(static_cast<std::uint32_t>(worker.result_version));
    summary->set_allows_commands(worker.allows_commands);
    summary->set_note(why_idle(worker));
    if (worker.connected) summary->set_trouble(worker.trouble);
  }
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
