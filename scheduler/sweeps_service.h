// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/sweeps.grpc.pb.h"
#include "scheduler/change_feed.h"
#include "scheduler/coordinator.h"
#include "scheduler/counter.h"
#include "scheduler/read_pool.h"
#include "views/table_cache.h"

namespace abl::scheduler {

/// Sweeps and their tables: reads come from the pool, changes go to the coordinator and are answered after
/// the commit.
class SweepsService final : public ablate::v1::Sweeps::CallbackService {
 public:
  SweepsService(Coordinator& coordinator, ReadPool& pool, views::TableCache& tables, Counter& counter,
                ChangeFeed& feed)
      : coordinator_{coordinator}, pool_{pool}, tables_{tables}, counter_{counter}, feed_{feed} {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* Validate(Context*, const ablate::v1::ValidateRequest*, ablate::v1::ValidateResponse*) override;
  Unary* Plan(Context*, const ablate::v1::PlanRequest*, ablate::v1::SweepPlan*) override;
  Unary* Submit(Context*, const ablate::v1::SubmitRequest*, ablate::v1::SubmitResponse*) override;
  Unary* ListSweeps(Context*, const ablate::v1::ListSweepsRequest*, ablate::v1::ListSweepsResponse*) override;
  Unary* GetSweep(Context*, const ablate::v1::SweepRequest*, ablate::v1::SweepDetail*) override;
  grpc::ServerWriteReactor<ablate::v1::Table>* GetTable(Context*, const ablate::v1::SweepRequest*) override;
  grpc::ServerWriteReactor<ablate::v1::SweepProgress>* WatchSweep(Context*,
                                                                  const ablate::v1::SweepRequest*) override;
  Unary* CancelSweep(Context*, const ablate::v1::SweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* PauseSweep(Context*, const ablate::v1::PauseSweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* ResumeSweep(Context*, const ablate::v1::SweepRequest*, ablate::v1::SweepSummary*) override;
  Unary* RetrySweep(Context*, const ablate::v1::RetrySweepRequest*, ablate::v1::RetrySweepResponse*) override;

 private:
  /// Answers a change once it is committed: with the error, or with the sweep's summary read back.
  void finish_with_summary(Unary* reactor, std::exception_ptr error, const std::string& sweep,
                           ablate::v1::SweepSummary* summary);

  Coordinator& coordinator_;
  ReadPool& pool_;
  views::TableCache& tables_;
  Counter& counter_;
  ChangeFeed& feed_;
};

}  // namespace abl::scheduler
