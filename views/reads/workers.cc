// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "config/document/result_version.h"
#include "storage/part_store.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Transaction;

/// Why a worker gets nothing, or not everything; empty when there is no reason.
std::string why_idle(const storage::WorkerRecord& worker) {
  if (worker.drained) return "drained" + (worker.drained->empty() ? "" : ": " + *worker.drained);
  if (!worker.connected) return "not connected";
  if (!worker.trouble.empty()) return worker.trouble;
  if (worker.quarantine) return "gets one trial at a time: " + worker.quarantine->why;
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

/// What runs under way take of a worker, by the newest sample of each.
struct Taken {
  std::optional<double> cpu_cores, gpu;
};

/// By worker. Reads a sample for each run under way, of which there are no more than slots, and a few.
std::map<std::string, Taken> taken_of(storage::Database& db) {
  std::map<std::string, Taken> taken;
  const auto known = [](const storage::Statement& row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional{row.real(column)};
  };
  db.prepared(R"sql(
      SELECT run.worker, SUM(s.cpu_cores), AVG(s.gpu)
      FROM run INDEXED BY run_under_way
      CROSS JOIN resource_use u ON u.run_id = run.id
      CROSS JOIN resource_sample s ON s.run_id = run.id AND s.at_ms = u.last_ms
      WHERE run.state IN ('leased', 'running')
      GROUP BY run.worker)sql")
      .all([&](const storage::Statement& row) {
        taken[row.text(0)] = {.cpu_cores = known(row, 1), .gpu = known(row, 2)};
        return 0;
      });
  return taken;
}

/// Those that are connected first: the names of pilots that are gone grow without end.
std::vector<storage::WorkerRecord> workers_in_order(storage::Database& db) {
  auto workers = storage::WorkerStore{db}.list();
  std::ranges::stable_partition(workers, &storage::WorkerRecord::connected);
  return workers;
}

}  // namespace

v1::ListWorkersResponse list_workers(storage::Database& db, const Page& page) {
  const Transaction snapshot{db, Transaction::kRead};
  v1::ListWorkersResponse message;
  const auto taken_by = taken_of(db);
  const auto all = workers_in_order(db);
  const std::size_t first = std::min<std::size_t>(page.first, all.size());
  const std::size_t count = std::min<std::size_t>(page.count, all.size() - first);
  message.set_left_out(static_cast<std::uint32_t>(all.size() - count));
  if (first + count < all.size()) message.set_next(static_cast<std::uint32_t>(first + count));
  for (const auto& worker : std::span{all}.subspan(first, count)) {
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
    const storage::TrialStore trials{db};
    for (const auto run : trials.under_way_on(worker.name)) summary->add_runs(run);
    for (const auto& part : storage::PartStore{db}.under_way_on(worker.name)) summary->add_parts(part.run);
    const auto taken = trials.slots_in_use(worker.name);
    for (auto& slot : *summary->mutable_slots())
      if (const auto runs = taken.find(slot.index()); runs != taken.end()) {
        slot.set_run(runs->second.front());
        slot.mutable_beside()->Assign(runs->second.begin() + 1, runs->second.end());
      }
    if (const auto use = taken_by.find(worker.name); worker.connected && use != taken_by.end()) {
      if (use->second.cpu_cores) summary->set_cpu_cores(*use->second.cpu_cores);
      if (use->second.gpu) summary->set_gpu(*use->second.gpu);
    }
    summary->set_version(worker.version);
    summary->set_result_version(static_cast<std::uint32_t>(worker.result_version));
    summary->set_allows_commands(worker.allows_commands);
    summary->mutable_labels()->insert(worker.labels.begin(), worker.labels.end());
    summary->set_note(why_idle(worker));
    if (worker.connected) summary->set_trouble(worker.trouble);
    if (worker.drained) summary->set_drained(*worker.drained);
    if (worker.quarantine) {
      summary->set_quarantine(worker.quarantine->why);
      *summary->mutable_quarantined_until() = to_proto(worker.quarantine->until);
    }
  }
  return message;
}

extern const Read kWorkersRead{
    .path = "workers",
    .about = "Workers with their slots and runs, and why they get no trials; connected ones first",
    .parameters = {{.name = "first",
                    .about = "Workers to skip; to continue, `next` of the last answer",
                    .number = Range{.otherwise = 0}},
                   {.name = "count",
                    .about = "Workers to return at most",
                    .number = Range{.highest = kMostWorkers, .otherwise = kMostWorkers}}},
    .message = v1::ListWorkersResponse::descriptor,
    .quick = true,
    .answer = [](const Query& query,
                 const Stored& stored) { return to_json(list_workers(stored.db, query.page())); },
};

}  // namespace abl::views
