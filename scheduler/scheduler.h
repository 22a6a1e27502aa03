// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/named_path.h"
#include "scheduler/access_control.h"
#include "scheduler/autoscaler.h"
#include "scheduler/change_feed.h"
#include "scheduler/coordinator.h"
#include "scheduler/counter.h"
#include "scheduler/depot_service.h"
#include "scheduler/remover.h"
#include "scheduler/services.h"
#include "scheduler/worker_link.h"
#include "storage/read_pool.h"
#include "storage/writer.h"

namespace abl::scheduler {

struct SchedulerOptions {
  std::filesystem::path store;
  LeasePolicy policy;
  Milliseconds watch_interval{250};     ///< watchers hear of changes at most this often
  std::filesystem::path trainer;        ///< for counting; empty: looked for (protocol::find_trainer)
  NamedPaths plugins;                   ///< likewise: where those lie that models name
  std::optional<FleetOptions> fleet{};  ///< it gets workers while trials wait
  DepotOptions depot{.limit = 0};       ///< `folder` empty: beside the store
};

/// A scheduler without ports and without a timer: the store, the coordinator and the services, which whoever
/// owns it serves and whose time it lets pass with `coordinator().tick()`.
class Scheduler {
 public:
  /// Opens the store and recovers what was under way.
  /// Throws: Error as storage::Database.
  Scheduler(const SchedulerOptions& options, const Clock& clock);
  /// Leaves one whole results file. Whoever serves it has stopped serving: no call is under way.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void register_services(grpc::ServerBuilder& builder);
  Coordinator& coordinator() { return coordinator_; }
  storage::Writer& writer() { return *writer_; }
  AccessControl& access() { return access_; }
  DepotService& depot() { return *depot_; }
  std::size_t watchers() { return sweeps_.watchers(); }  ///< of sweeps, over gRPC
  ChangeFeed& feed() { return feed_; }
  /// Where more is kept than in the store. Thread: any.
  std::vector<ablate::v1::KeptPlace> other_places() const;
  views::TableCache& tables() { return *tables_; }
  /// From now on the fleet file's queues get workers.
  void start_fleet() {
    if (autoscaler_) autoscaler_->start();
  }
  /// Ends the program that counts architectures; those who wait for it are answered.
  void stop_counting() { counter_->stop(); }

 private:
  ChangeFeed feed_;
  std::unique_ptr<storage::Writer> writer_;
  Coordinator coordinator_;
  AccessControl access_;
  std::unique_ptr<Counter> counter_;
  std::unique_ptr<storage::ReadPool> reads_;
  std::unique_ptr<views::TableCache> tables_;
  SweepsService sweeps_;
  RunsService runs_;
  WorkersService workers_;
  WorkerLinkService worker_link_;
  AccessService access_service_;
  KeepingService keeping_;
  std::unique_ptr<DepotService> depot_;
  std::unique_ptr<Remover> remover_;
  std::unique_ptr<Autoscaler> autoscaler_;
};

}  // namespace abl::scheduler
