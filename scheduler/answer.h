// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include "scheduler/read_pool.h"
#include "scheduler/status.h"

namespace abl::scheduler {

/// Answers a unary call from the store: `*response = read(db)` on the pool; an exception becomes the status.
template <class Response, class Read>
grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, Response* response, ReadPool& pool,
                                 Read read) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  pool.post([=](storage::Database& db) { reactor->Finish(status_of([&] { *response = read(db); })); });
  return reactor;
}

}  // namespace abl::scheduler
