// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/workers.grpc.pb.h"
#include "scheduler/coordinator.h"

namespace abl::scheduler {

/// The workers' streams: each message is handed to the coordinator, what it answers is sent.
class WorkerLinkService final : public ablate::v1::WorkerLink::CallbackService {
 public:
  explicit WorkerLinkService(Coordinator& coordinator) : coordinator_{coordinator} {}
  grpc::ServerBidiReactor<ablate::v1::WorkerMessage, ablate::v1::SchedulerMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  Coordinator& coordinator_;
};

}  // namespace abl::scheduler
