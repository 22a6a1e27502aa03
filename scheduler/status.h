// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <exception>
#include <string>

#include "base/error.h"

namespace abl::scheduler {

/// An error as an RPC's status: the code of an abl::Error, kInternal for any other exception, OK for nullptr.
/// A message of several lines is kept to what fits into HTTP/2 trailers, with "… and 12 more" as its last
/// line.
grpc::Status to_status(std::exception_ptr error);
grpc::Status to_status(const Error& error);

/// Runs `work`; its exception becomes the status.
template <class Work>
grpc::Status status_of(Work&& work) {
  try {
    work();
    return grpc::Status::OK;
  } catch (...) {
    return to_status(std::current_exception());
  }
}

/// The message of any exception, for logs.
std::string message_of(std::exception_ptr error);

}  // namespace abl::scheduler
