// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/workers.grpc.pb.h"
#include "scheduler/access_control.h"
#include "scheduler/coordinator.h"

namespace abl::scheduler {

/// The workers' streams: each message is handed to the coordinator, what it answers is sent.
class WorkerLinkService final : public ablate::v1::WorkerLink::CallbackService {
 public:
  WorkerLinkService(Coordinator& coordinator, const AccessControl& access)
      : coordinator_{coordinator}, access_{access} {}
  grpc::ServerBidiReactor<ablate::v1::WorkerMessage, ablate::v1::SchedulerMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  Coordinator& coordinator_;
  const AccessControl& access_;
};

}  // namespace abl::scheduler
