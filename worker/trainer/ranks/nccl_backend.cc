// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "worker/trainer/ranks/backends.h"

#ifdef USE_C10D_NCCL
#include <c10/cuda/CUDAFunctions.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace abl::ranks {

#ifdef USE_C10D_NCCL

c10::intrusive_ptr<c10d::Backend> nccl_backend(const BackendOptions& options, int device) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  auto settings = c10d::ProcessGroupNCCL::Options::create();
  settings->timeout = options.timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(options.store, options.rank, options.ranks,
                                                     std::move(settings));
}

#else

c10::intrusive_ptr<c10d::Backend> nccl_backend(const BackendOptions&, int) {
  throw Error{Code::kFailedPrecondition,
              "several GPUs: this trainer is built without NCCL; build it with a CUDA build of PyTorch and "
              "nvidia-nccl, or train with --ranks 1"};
}

#endif

}  // namespace abl::ranks
