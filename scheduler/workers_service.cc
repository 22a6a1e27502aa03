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

}  // namespace abl::scheduler
