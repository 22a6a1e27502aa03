// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/retention.grpc.pb.h"
#include "ablate/v1/runs.grpc.pb.h"
#include "ablate/v1/sweeps.grpc.pb.h"
#include "ablate/v1/workers.grpc.pb.h"
#include "scheduler/access_control.h"
#include "scheduler/change_feed.h"
#include "scheduler/coordinator.h"
#include "scheduler/counter.h"
#include "scheduler/depot.h"
#include "scheduler/lane.h"
#include "scheduler/watch_hub.h"
#include "storage/read_pool.h"
#include "views/table_cache.h"
#include "views/views.h"

namespace abl::scheduler {

class Autoscaler;

/// Runs: what they did, said and measured.
class RunsService final : public ablate::v1::Runs::CallbackService {
 public:
  RunsService(Coordinator& coordinator, storage::ReadPool& pool, ChangeFeed& feed)
      : coordinator_{coordinator}, pool_{pool}, slow_{pool, 1}, feed_{feed} {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* ListRuns(Context*, const ablate::v1::ListRunsRequest*, ablate::v1::ListRunsResponse*) override;
  Unary* GetRun(Context*, const ablate::v1::RunRequest*, ablate::v1::RunDetail*) override;
  Unary* GetMetrics(Context*, const ablate::v1::GetMetricsRequest*, ablate::v1::GetMetricsResponse*) override;
  grpc::ServerWriteReactor<ablate::v1::LogText>* TailLog(Context*,
                                                         const ablate::v1::TailLogRequest*) override;
  grpc::ServerWriteReactor<ablate::v1::ExportBlock>* Export(Context*,
                                                            const ablate::v1::SweepRequest*) override;
  Unary* Why(Context*, const ablate::v1::WhyRequest*, ablate::v1::WhyResponse*) override;
  Unary* Compare(Context*, const ablate::v1::CompareRequest*, ablate::v1::CompareResponse*) override;
  Unary* GetProbes(Context*, const ablate::v1::ProbesRequest*, ablate::v1::ProbesResponse*) override;
  Unary* PutProbes(Context*, const ablate::v1::PutProbesRequest*, ablate::v1::ProbesResponse*) override;

 private:
  Coordinator& coordinator_;
  storage::ReadPool& pool_;
  Lane slow_;  // curves, lists, exports: they leave threads of the pool to others
  ChangeFeed& feed_;
};

/// Sweeps and their tables: reads come from the pool, changes go to the coordinator and are answered after
/// the commit.
class SweepsService final
    : public ablate::v1::Sweeps::WithRawCallbackMethod_WatchSweep<ablate::v1::Sweeps::CallbackService> {
 public:
  SweepsService(Coordinator& coordinator, storage::ReadPool& pool, views::TableCache& tables,
                Counter& counter, ChangeFeed& feed, const AccessControl& access)
      : coordinator_{coordinator},
        pool_{pool},
        slow_{pool, 1},
        tables_{tables},
        counter_{counter},
        feed_{feed},
        access_{access},
        watched_{slow_, feed, tables, coordinator, {}} {
    tables.follow(feed.log());
  }

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* Validate(Context*, const ablate::v1::ValidateRequest*, ablate::v1::ValidateResponse*) override;
  Unary* Plan(Context*, const ablate::v1::PlanRequest*, ablate::v1::SweepPlan*) override;
  Unary* Submit(Context*, const ablate::v1::SubmitRequest*, ablate::v1::SubmitResponse*) override;
  Unary* ListSweeps(Context*, const ablate::v1::ListSweepsRequest*, ablate::v1::ListSweepsResponse*) override;
  Unary* GetSweep(Context*, const ablate::v1::SweepRequest*, ablate::v1::SweepDetail*) override;
  grpc::ServerWriteReactor<ablate::v1::Table>* GetTable(Context*, const ablate::v1::SweepRequest*) override;
  /// Of messages as bytes, which many have in common.
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchSweep(Context*, const grpc::ByteBuffer*) override;
  Unary* CancelSweep(Context*, const ablate::v1::SweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* PauseSweep(Context*, const ablate::v1::PauseSweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* ResumeSweep(Context*, const ablate::v1::ResumeSweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* AdjustSweep(Context*, const ablate::v1::AdjustSweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* CancelTrial(Context*, const ablate::v1::CancelTrialRequest*, ablate::v1::SweepSummary*) override;
  Unary* ExtendSweep(Context*, const ablate::v1::ExtendSweepRequest*,
                     ablate::v1::ExtendSweepResponse*) override;
  Unary* RetrySweep(Context*, const ablate::v1::RetrySweepRequest*, ablate::v1::RetrySweepResponse*) override;
  Unary* RemoveSweep(Context*, const ablate::v1::RemoveSweepRequest*,
                     ablate::v1::RemoveSweepResponse*) override;
  Unary* RenameSweep(Context*, const ablate::v1::RenameSweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* AnnotateSweep(Context*, const ablate::v1::AnnotateSweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* GetProvenance(Context*, const ablate::v1::SweepRequest*, ablate::v1::ProvenanceResponse*) override;
  Unary* GetTuning(Context*, const ablate::v1::SweepRequest*, ablate::v1::TuningResponse*) override;
  Unary* GetSweepText(Context*, const ablate::v1::SweepTextRequest*, ablate::v1::SweepText*) override;

  std::size_t watchers() { return watched_.readers(); }

 private:
  /// Answers a change once it is committed: with the error, or with the sweep's summary read back.
  void finish_with_summary(Unary* reactor, std::exception_ptr error, const std::string& sweep,
                           ablate::v1::SweepSummary* summary);

  Coordinator& coordinator_;
  storage::ReadPool& pool_;
  Lane slow_;  // sweep files, tables, what is watched
  views::TableCache& tables_;
  Counter& counter_;
  ChangeFeed& feed_;
  const AccessControl& access_;
  WatchHub watched_;
};

/// Workers: the list of them, what people want of one, and who gets more of them.
class WorkersService final : public ablate::v1::Workers::CallbackService {
 public:
  WorkersService(Coordinator& coordinator, storage::ReadPool& pool)
      : coordinator_{coordinator}, pool_{pool} {}
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const ablate::v1::ListWorkersRequest* request,
                                        ablate::v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const ablate::v1::DrainWorkerRequest* request,
                                        ablate::v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* GetFleet(grpc::CallbackServerContext* context,
                                     const ablate::v1::GetFleetRequest* request,
                                     ablate::v1::FleetStatus* response) override;
  grpc::ServerUnaryReactor* PauseFleetQueue(grpc::CallbackServerContext* context,
                                            const ablate::v1::PauseFleetQueueRequest* request,
                                            ablate::v1::FleetStatus* response) override;
  /// Before it is served, where there is a fleet file.
  void serve_fleet(Autoscaler& autoscaler) { autoscaler_ = &autoscaler; }

 private:
  Autoscaler& autoscaler() const;

  Coordinator& coordinator_;
  storage::ReadPool& pool_;
  Autoscaler* autoscaler_ = nullptr;
};

/// What the depot keeps for how long.
ablate::v1::KeptPlace kept_in(const Depot& depot, const PushedData& pushed);
/// And what the fleet's launchers leave behind.
ablate::v1::KeptPlace kept_of_pilots();

/// What is kept, and for how long.
class KeepingService final : public ablate::v1::Keeping::CallbackService {
 public:
  KeepingService(storage::ReadPool& pool, views::OtherPlaces others)
      : pool_{pool}, others_{std::move(others)} {}
  grpc::ServerUnaryReactor* GetRetention(grpc::CallbackServerContext* context,
                                         const ablate::v1::RetentionRequest* request,
                                         ablate::v1::Retention* response) override;

 private:
  storage::ReadPool& pool_;
  const views::OtherPlaces others_;
};

}  // namespace abl::scheduler
