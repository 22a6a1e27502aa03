// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace abl::agent {

/// The driver's own library (NVML), found when it is asked for: nothing is linked, and where there is no
/// driver everything is absent. Thread: one.
class Nvml {
 public:
  /// `library`: what the loader is asked for.
  explicit Nvml(std::string library = "libnvidia-ml.so.1") : library_{std::move(library)} {}
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Of a GPU by its entry of CUDA_VISIBLE_DEVICES: "0", "GPU-…", "MIG-…". Share of the driver's last
  /// sampling period (a sixth of a second to a second) in which it computed, 0 to 1. A part of a GPU (MIG)
  /// has none.
  std::optional<double> utilisation(const std::string& gpu);
  /// Bytes of it that are taken, by whomever.
  std::optional<std::uint64_t> memory_taken(const std::string& gpu);

 private:
  struct Functions;
  void* device(const std::string& gpu);
  bool load();

  const std::string library_;
  bool tried_ = false;
  void* handle_ = nullptr;
  Functions* functions_ = nullptr;
  std::map<std::string, void*> devices_;  ///< null: there is none of that name
};

}  // namespace abl::agent
