// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/workers.grpc.pb.h"
#include "scheduler/read_pool.h"

namespace abl::scheduler {

/// The list of workers.
class WorkersService final : public ablate::v1::Workers::CallbackService {
 public:
  explicit WorkersService(ReadPool& pool) : pool_{pool} {}
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const ablate::v1::ListWorkersRequest* request,
                                        ablate::v1::ListWorkersResponse* response) override;

 private:
  ReadPool& pool_;
};

}  // namespace abl::scheduler
