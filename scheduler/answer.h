// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <stop_token>
#include <utility>

#include "scheduler/read_pool.h"
#include "scheduler/status.h"

namespace abl::scheduler {

/// One unary call that is answered from the store. Its queries end when its caller goes, and the answer
/// counts among those on their way until it has left. Deletes itself when gRPC is done with it.
template <class Response, class Read>
class Answer final : public grpc::ServerUnaryReactor {
 public:
  Answer(ReadPool& pool, Response* response, Read read)
      : pool_{pool}, response_{response}, read_{std::move(read)} {}

  void start() {
    if (pool_.full())
      return Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many requests wait; try again later"});
    pool_.post([this](storage::Database& db) { Finish(status_of([&] { answer(db); })); }, stop_.get_token());
  }

 private:
  void answer(storage::Database& db) {
    *response_ = read_(db);
    const std::size_t bytes = response_->ByteSizeLong();
    if (pool_.reserve(bytes)) {
      bytes_ = bytes;
      return;
    }
    response_->Clear();
    throw Error{
        Code::kResourceExhausted,
        fmt::format(
            "no room for an answer of {} MiB beside those that are being sent; ask for less, or later",
            bytes >> 20)};
  }
  void OnCancel() override { stop_.request_stop(); }
  void OnDone() override {
    pool_.release(bytes_);
    delete this;
  }

  ReadPool& pool_;
  Response* const response_;
  const Read read_;
  std::stop_source stop_;
  std::size_t bytes_ = 0;
};

/// Answers a unary call from the store: `*response = read(db)` on the pool; an exception becomes the status.
template <class Response, class Read>
grpc::ServerUnaryReactor* answer(ReadPool& pool, Response* response, Read read) {
  auto* reactor = new Answer<Response, Read>(pool, response, std::move(read));
  reactor->start();
  return reactor;
}

}  // namespace abl::scheduler
