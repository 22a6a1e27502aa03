// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/runs.grpc.pb.h"
#include "scheduler/change_feed.h"
#include "scheduler/read_pool.h"

namespace abl::scheduler {

/// Runs: what they did, said and measured.
class RunsService final : public ablate::v1::Runs::CallbackService {
 public:
  RunsService(ReadPool& pool, ChangeFeed& feed) : pool_{pool}, feed_{feed} {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  Unary* ListRuns(Context*, const ablate::v1::ListRunsRequest*, ablate::v1::ListRunsResponse*) override;
  Unary* GetRun(Context*, const ablate::v1::RunRequest*, ablate::v1::RunDetail*) override;
  Unary* GetMetrics(Context*, const ablate::v1::GetMetricsRequest*, ablate::v1::GetMetricsResponse*) override;
  grpc::ServerWriteReactor<ablate::v1::LogText>* TailLog(Context*,
                                                         const ablate::v1::TailLogRequest*) override;
  grpc::ServerWriteReactor<ablate::v1::ExportBlock>* Export(Context*,
                                                            const ablate::v1::SweepRequest*) override;

 private:
  ReadPool& pool_;
  ChangeFeed& feed_;
};

}  // namespace abl::scheduler
