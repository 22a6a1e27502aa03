// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "scheduler/answer.h"
#include "scheduler/lane.h"

namespace abl::scheduler {

/// As Answer, for what may take long: it waits for its turn on a lane.
template <class Response, class Read>
class SlowAnswer final : public Cancellable {
 public:
  SlowAnswer(storage::ReadPool& pool, Response* response, Read read)
      : response_{response}, read_{std::move(read)}, room_{pool} {}

  void start(Lane& lane) {
    if (refused_by(lane.full())) return;
    lane.post([this](storage::Database& db) { Finish(status_of([&] { answer(db); })); }, stop_token());
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

  Response* const response_;
  const Read read_;
  storage::ReadPool::Room room_;
};

template <class Response, class Read>
grpc::ServerUnaryReactor* slow_answer(storage::ReadPool& pool, Lane& lane, Response* response, Read read) {
  auto* reactor = new SlowAnswer<Response, Read>(pool, response, std::move(read));
  reactor->start(lane);
  return reactor;
}

}  // namespace abl::scheduler
