// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler.h"

namespace abl::scheduler {
namespace {

constexpr int kReadThreads = 3;

DepotOptions beside(const std::filesystem::path& store, DepotOptions depot) {
  if (depot.folder.empty()) depot.folder = store.string() + ".depot";
  return depot;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, const Clock& clock)
    : feed_{options.watch_interval},
      writer_{std::make_unique<storage::Writer>(options.store)},
      coordinator_{*writer_, clock, options.policy, feed_},
      access_{*writer_, clock},
      counter_{std::make_unique<Counter>(
          options.store, planning::ModelCounter{options.trainer, options.plugins}, coordinator_)},
      reads_{std::make_unique<storage::ReadPool>(options.store, kReadThreads)},
      tables_{std::make_unique<views::TableCache>(options.store)},
      sweeps_{coordinator_, *reads_, *tables_, *counter_, feed_, access_},
      runs_{coordinator_, *reads_, feed_},
      workers_{coordinator_, *reads_},
      worker_link_{coordinator_, access_},
      access_service_{*writer_, *reads_, clock, access_},
      keeping_{*reads_, [this] { return other_places(); }},
      depot_{std::make_unique<DepotService>(beside(options.store, options.depot), options.store, clock,
                                            access_, coordinator_)} {
  coordinator_.serve_depot([this](ablate::v1::Assign& assign) { depot_->mark(assign); },
                           [this] { return depot_->pushed().fingerprints(); }, depot_->every());
  coordinator_.recover();
  remover_ = std::make_unique<Remover>(*writer_, clock, feed_);
  if (!options.fleet) return;
  coordinator_.note_needs();
  autoscaler_ = std::make_unique<Autoscaler>(*options.fleet, options.store, coordinator_, access_, clock,
                                             make_launchers(options.fleet->config, coordinator_.store_id(),
                                                            std::filesystem::absolute(options.store), clock));
  workers_.serve_fleet(*autoscaler_);
}

Scheduler::~Scheduler() {
  autoscaler_.reset();
  remover_.reset();
  counter_.reset();  // stores what it has counted
  depot_->stop();    // it reads the store
  reads_.reset();    // who still reads keeps the log from being emptied
  tables_.reset();
  writer_.reset();  // finishes what was posted, with callbacks into the coordinator
}

std::vector<ablate::v1::KeptPlace> Scheduler::other_places() const {
  std::vector<ablate::v1::KeptPlace> places{kept_in(depot_->depot(), depot_->pushed())};
  if (autoscaler_) places.push_back(kept_of_pilots());
  return places;
}

void Scheduler::register_services(grpc::ServerBuilder& builder) {
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &sweeps_, &runs_, &workers_, &worker_link_, &access_service_, &keeping_, depot_.get()})
    builder.RegisterService(service);
}

}  // namespace abl::scheduler
