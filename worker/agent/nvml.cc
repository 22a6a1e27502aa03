// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/resource_sampler.h"

#include <dlfcn.h>

#include <charconv>
#include <utility>

#include "base/log.h"

// As nvml.h of the CUDA toolkit declares them, which is not needed to build this.
namespace abl::agent {

constexpr int kNvmlSuccess = 0;

struct Nvml::Functions {
  struct Utilisation {
    unsigned int gpu, memory;  ///< percent
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  /// Of drivers from 510 on: `used` without what the driver keeps for itself.
  struct MemoryV2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
  };
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_index)(unsigned int, void**) = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  int (*utilisation)(void*, Utilisation*) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*memory_v2)(void*, MemoryV2*) = nullptr;  ///< null: an older driver
};

Nvml::~Nvml() {
  if (functions_) functions_->shutdown();
  delete functions_;
  if (handle_) ::dlclose(handle_);
}

bool Nvml::load() {
  if (std::exchange(tried_, true)) return functions_ != nullptr;
  handle_ = ::dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) {
    log_info("no GPU use in the samples of runs: {}", ::dlerror());
    return false;
  }
  Functions found;
  const auto find = [this](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle_, name));
    return function != nullptr;
  };
  const bool has_all = find(found.init, "nvmlInit_v2") && find(found.shutdown, "nvmlShutdown") &&
                       find(found.by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                       find(found.by_uuid, "nvmlDeviceGetHandleByUUID") &&
                       find(found.utilisation, "nvmlDeviceGetUtilizationRates") &&
                       find(found.memory, "nvmlDeviceGetMemoryInfo");
  find(found.memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  const int result = has_all ? found.init() : -1;
  if (result != kNvmlSuccess) {
    log_info("no GPU use in the samples of runs: {}",
             has_all ? "NVML says error " + std::to_string(result) : library_ + " lacks functions");
    return false;
  }
  functions_ = new Functions{found};
  return true;
}

void* Nvml::device(const std::string& gpu) {
  if (!load()) return nullptr;
  if (const auto known = devices_.find(gpu); known != devices_.end()) return known->second;
  void* device = nullptr;
  unsigned int index = 0;
  const auto [end, error] = std::from_chars(gpu.data(), gpu.data() + gpu.size(), index);
  const bool is_index = error == std::errc{} && end == gpu.data() + gpu.size();
  const int result =
      is_index ? functions_->by_index(index, &device) : functions_->by_uuid(gpu.c_str(), &device);
  return devices_[gpu] = result == kNvmlSuccess ? device : nullptr;
}

std::optional<double> Nvml::utilisation(const std::string& gpu) {
  void* const of = device(gpu);
  Functions::Utilisation said{};
  if (!of || functions_->utilisation(of, &said) != kNvmlSuccess || said.gpu > 100) return std::nullopt;
  return said.gpu / 100.0;
}

std::optional<std::uint64_t> Nvml::memory_taken(const std::string& gpu) {
  void* const of = device(gpu);
  if (!of) return std::nullopt;
  Functions::MemoryV2 newer{};
  newer.version = sizeof(newer) | (2U << 24);
  if (functions_->memory_v2 && functions_->memory_v2(of, &newer) == kNvmlSuccess) return newer.used;
  Functions::Memory said{};
  if (functions_->memory(of, &said) != kNvmlSuccess) return std::nullopt;
  return said.used;
}

}  // namespace abl::agent
