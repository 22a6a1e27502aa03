// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

namespace abl::ranks {

/// What the backends of one rank have in common.
struct BackendOptions {
  c10::intrusive_ptr<c10d::Store> store;  ///< where the ranks find each other
  int rank = 0, ranks = 1;
  std::chrono::milliseconds timeout{};  ///< of each collective
};

/// Between processors. `host`: of this rank, or of the store; where that is this machine alone, so are the
/// connections. `own`: it is an address of this machine, and connections come to no other.
c10::intrusive_ptr<c10d::Backend> gloo_backend(const BackendOptions& options, const std::string& host,
                                               bool own);

/// Between GPUs; makes GPU `device` this process's own.
/// Throws: Error{kFailedPrecondition} where PyTorch has no NCCL.
c10::intrusive_ptr<c10d::Backend> nccl_backend(const BackendOptions& options, int device);

}  // namespace abl::ranks
