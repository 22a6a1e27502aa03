// SPDX-License-Identifier: Apache-2.0
#include "scheduler/services.h"

#include "scheduler/answer.h"
#include "views/views.h"

namespace abl::scheduler {

grpc::ServerUnaryReactor* WorkersService::ListWorkers(grpc::CallbackServerContext*,
                                                      const ablate::v1::ListWorkersRequest*,
                                                      ablate::v1::ListWorkersResponse* response) {
  return answer(pool_, response, [](storage::Database& db) { return views::list_workers(db); });
}

grpc::ServerUnaryReactor* WorkersService::DrainWorker(grpc::CallbackServerContext* context,
                                                      const ablate::v1::DrainWorkerRequest* request,
                                                      ablate::v1::ListWorkersResponse* response) {
  auto* reactor = context->DefaultReactor();
  coordinator_.drain(request->name(), request->resume() ? std::nullopt : std::optional{request->reason()},
                     request->stop_running() && !request->resume(), [=, this](std::exception_ptr error) {
                       if (error) return reactor->Finish(to_status(error));
                       pool_.post([=](storage::Database& db) {
                         reactor->Finish(status_of([&] { *response = views::list_workers(db); }));
                       });
                     });
  return reactor;
}

}  // namespace abl::scheduler
