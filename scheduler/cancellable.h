// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <stop_token>

#include "scheduler/read_pool.h"

namespace abl::scheduler {

/// A unary call that asks for a stop when its caller goes. Deletes itself when gRPC is done with it.
class Cancellable : public grpc::ServerUnaryReactor {
 public:
  std::stop_token stop_token() { return stop_.get_token(); }

  /// Refuses the call where more wait than can be answered soon. Returns: whether it did.
  bool refused_by(bool full) {
    if (full) Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many requests wait; try again later"});
    return full;
  }

 protected:
  void OnCancel() override { stop_.request_stop(); }
  void OnDone() override { delete this; }

 private:
  std::stop_source stop_;
};

}  // namespace abl::scheduler
