// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "config/document/result_version.h"
#include "storage/chain_store.h"
#include "storage/metric_store.h"
#include "storage/resource_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

constexpr int kLogTailLines = 100;
constexpr std::size_t kLogTailBytes = 64 << 10;

/// Whose weights it has taken, or will take.
void add_sources(storage::Database& db, const storage::RunRecord& run, v1::RunDetail& message) {
  const storage::ChainStore chains{db};
  const auto given = chains.given(run.id);
  for (const auto& file : chains.files(run.trial)) {
    auto& source = *message.add_sources();
    source.set_name(file.name);
    source.set_take(std::string{name_of(file.take)});
    source.set_trial(file.trial);
    source.set_state(std::string{storage::to_text(file.state)});
    if (const auto its = std::ranges::find(given, file.name, &storage::ChainStore::Given::name);
        its != given.end()) {
      source.set_run(its->run);
      source.set_step(its->step);
      source.set_sha256(its->sha256);
    }
    const auto own = storage::SweepStore{db}.positions(run.trial);
    const auto places = storage::SweepStore{db}.positions(file.trial);
    auto place = std::ranges::find_if(places, [&](const auto& each) {  // rather in a sweep of its own
      return std::ranges::find(own, each.sweep, &storage::SweepStore::Position::sweep) != own.end();
    });
    if (place == places.end()) place = places.begin();
    if (place == places.end()) continue;
    source.set_sweep(place->sweep);
    source.set_row(place->row);
    source.set_seed(place->seed);
  }
}

}  // namespace

v1::RunDetail run_detail(storage::Database& db, storage::RunId id) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore store{db};
  const auto run = store.run(id);
  const auto trial = store.get(run.trial);
  v1::RunDetail message;
  *message.mutable_summary() = run_summary(db, run);
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
  if (const auto use = storage::ResourceStore{db}.use(id)) *message.mutable_resources() = resource_use(*use);
  add_sources(db, run, message);
  if (trial.before_mend())
    for (auto& sentence : config::changes_since(trial.identity.result_version,
                                                nlohmann::json::parse(trial.config, nullptr, false)))
      message.add_before_mend(std::move(sentence));
  if (trial.before_mend() && message.before_mend().empty())  // a trial whose weights it takes
    message.add_before_mend(config::what_changed(trial.due_version));
  return message;
}

extern const Read kRunRead{
    .path = "runs/*",
    .of = &kRunOfPath,
    .about =
        "The run's configuration, environment, metric summaries, checkpoints, attempts, and end of its log",
    .message = v1::RunDetail::descriptor,
    .quick = true,
    .answer =
        [](const Query& query, const Stored& stored) {
          return to_json(run_detail(stored.db, parse_id("run", query.name)));
        },
};

}  // namespace abl::views
