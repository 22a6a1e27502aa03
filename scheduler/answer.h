// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <stop_token>
#include <utility>

#include "scheduler/status.h"
#include "storage/read_pool.h"

namespace abl::scheduler {

/// A unary call that asks for a stop when its caller goes. Deletes itself when gRPC is done with it.
class Cancellable : public grpc::ServerUnaryReactor {
 public:
  std::stop_token stop_token() { return stop_.get_token(); }

  /// Refuses the call where more wait than can be answered soon. Returns: whether it did.
  bool refused_by(bool full) {
    if (full) Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many requests; try again later"});
    return full;
  }

 protected:
  void OnCancel() override { stop_.request_stop(); }
  void OnDone() override { delete this; }

 private:
  std::stop_source stop_;
};

/// One unary call that is answered from the store. Its queries end when its caller goes, and the answer
/// counts among those on their way until it has left. Deletes itself when gRPC is done with it.
template <class Response, class Read>
class Answer final : public Cancellable {
 public:
  Answer(storage::ReadPool& pool, Response* response, Read read)
      : pool_{pool}, response_{response}, read_{std::move(read)} {}

  void start() {
    if (refused_by(pool_.full())) return;
    pool_.post([this](storage::Database& db) { Finish(status_of([&] { answer(db); })); }, stop_token());
  }

 private:
  void answer(storage::Database& db) {
    room_.resize(storage::ReadPool::Room::kToBegin);  // before it is there
    *response_ = read_(db);
    try {
      room_.resize(response_->ByteSizeLong());
    } catch (...) {
      response_->Clear();
      throw;
    }
  }

  storage::ReadPool& pool_;
  Response* const response_;
  const Read read_;
  storage::ReadPool::Room room_{pool_};
};

/// Answers a unary call from the store: `*response = read(db)` on the pool; an exception becomes the status.
template <class Response, class Read>
grpc::ServerUnaryReactor* answer(storage::ReadPool& pool, Response* response, Read read) {
  auto* reactor = new Answer<Response, Read>(pool, response, std::move(read));
  reactor->start();
  return reactor;
}

}  // namespace abl::scheduler
