// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "scheduler/cancellable.h"
#include "scheduler/read_pool.h"
#include "scheduler/status.h"

namespace abl::scheduler {

/// One unary call that is answered from the store. Its queries end when its caller goes, and the answer
/// counts among those on their way until it has left. Deletes itself when gRPC is done with it.
template <class Response, class Read>
class Answer final : public Cancellable {
 public:
  Answer(ReadPool& pool, Response* response, Read read)
      : pool_{pool}, response_{response}, read_{std::move(read)} {}

  void start() {
    if (refused_by(pool_.full())) return;
    pool_.post([this](storage::Database& db) { Finish(status_of([&] { answer(db); })); }, stop_token());
  }

 private:
  void answer(storage::Database& db) {
    room_.resize(ReadPool::Room::kToBegin);  // before it is there
    *response_ = read_(db);
    try {
      room_.resize(response_->ByteSizeLong());
    } catch (...) {
      response_->Clear();
      throw;
    }
  }

  ReadPool& pool_;
  Response* const response_;
  const Read read_;
  ReadPool::Room room_{pool_};
};

/// Answers a unary call from the store: `*response = read(db)` on the pool; an exception becomes the status.
template <class Response, class Read>
grpc::ServerUnaryReactor* answer(ReadPool& pool, Response* response, Read read) {
  auto* reactor = new Answer<Response, Read>(pool, response, std::move(read));
  reactor->start();
  return reactor;
}

}  // namespace abl::scheduler
