// SPDX-License-Identifier: Apache-2.0
#include "scheduler/services.h"

#include "base/error.h"
#include "scheduler/answer.h"
#include "scheduler/autoscaler.h"
#include "views/views.h"

namespace abl::scheduler {

grpc::ServerUnaryReactor* WorkersService::ListWorkers(grpc::CallbackServerContext*,
                                                      const ablate::v1::ListWorkersRequest* request,
                                                      ablate::v1::ListWorkersResponse* response) {
  return answer(pool_, response, [request](storage::Database& db) {
    return views::list_workers(db, {.first = request->first(), .count = views::kMostWorkers});
  });
}

grpc::ServerUnaryReactor* WorkersService::DrainWorker(grpc::CallbackServerContext* context,
                                                      const ablate::v1::DrainWorkerRequest* request,
                                                      ablate::v1::ListWorkersResponse* response) {
  auto* reactor = context->DefaultReactor();
  coordinator_.drain(request->name(), request->resume() ? std::nullopt : std::optional{request->reason()},
                     request->stop_running() && !request->resume(), [=, this](std::exception_ptr error) {
                       if (error) return reactor->Finish(to_status(error));
                       pool_.post([=](storage::Database& db) {
                         reactor->Finish(status_of(
                             [&] { *response = views::list_workers(db, {.count = views::kMostWorkers}); }));
                       });
                     });
  return reactor;
}

Autoscaler& WorkersService::autoscaler() const {
  if (!autoscaler_)
    throw Error{
        Code::kFailedPrecondition,
        "this scheduler starts no workers: it runs without a fleet file (ablate-scheduler --fleet FILE)"};
  return *autoscaler_;
}

grpc::ServerUnaryReactor* WorkersService::GetFleet(grpc::CallbackServerContext* context,
                                                   const ablate::v1::GetFleetRequest*,
                                                   ablate::v1::FleetStatus* response) {
  auto* reactor = context->DefaultReactor();
  reactor->Finish(status_of([&] { *response = autoscaler().status(); }));
  return reactor;
}

grpc::ServerUnaryReactor* WorkersService::PauseFleetQueue(grpc::CallbackServerContext* context,
                                                          const ablate::v1::PauseFleetQueueRequest* request,
                                                          ablate::v1::FleetStatus* response) {
  auto* reactor = context->DefaultReactor();
  reactor->Finish(status_of([&] {
    if (request->resume())
      autoscaler().resume(request->queue());
    else
      autoscaler().pause(request->queue(), request->reason());
    *response = autoscaler().status();
  }));
  return reactor;
}

}  // namespace abl::scheduler
