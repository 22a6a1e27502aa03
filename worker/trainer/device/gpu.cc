// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/device/gpu.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <torch/cuda.h>

#include <cstdlib>

#include "base/error.h"

#ifdef ABLATE_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif

namespace abl::device {

std::string name_of(torch::Device device) {
#ifdef ABLATE_CUDA
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->name;
#endif
  return device.is_cpu() ? "cpu" : "cuda";
}

double peak_memory_bytes(torch::Device device) {
  if (device.is_cpu()) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * static_cast<double>(usage.ru_maxrss);
  }
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  const auto statistics = c10::getDeviceAllocator(device.type())->getDeviceStats(index);
  return static_cast<double>(statistics.allocated_bytes[kAll].peak);
}

void try_gpus(int count) {
  const auto there = static_cast<int>(torch::cuda::device_count());
  if (there < count)
    throw Error{Code::kUnavailable, fmt::format("{} of {} GPUs can be used here", there, count)};
  for (int gpu = 0; gpu < count; ++gpu)
    torch::zeros({1}, torch::Device{torch::kCUDA, static_cast<c10::DeviceIndex>(gpu)}).item<float>();
}

void compute_deterministically() {
  // cuBLAS reads it when it is first used; without it, it may share scratch memory between streams
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
}

bool is_deterministic(torch::Device device) {
  return device.is_cpu() || at::globalContext().deterministicAlgorithms();
}

}  // namespace abl::device
