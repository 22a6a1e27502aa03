// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abl::agent {

/// Room for one run: a GPU, or a share of the processor cores. Its thread count is fixed, because results
/// depend on it.
struct Slot {
  std::string device;  ///< "cpu" or "cuda:0"
  std::string name;    ///< "NVIDIA H200", "2 threads"
  int threads = 1;
  std::string visible;       ///< the GPU's entry for CUDA_VISIBLE_DEVICES; empty for a CPU slot
  std::uint64_t memory = 0;  ///< of the GPU, in bytes: runs that pack share it; 0: not known, and none do
};

struct Gpu {
  std::string index;  ///< as the driver counts: "0"
  std::string name;
  std::uint64_t memory = 0;  ///< bytes; 0: not known
};

/// What the machine has, and what was asked for.
struct Machine {
  int cores = 1;
  std::vector<Gpu> gpus;
  std::optional<std::string> visible;  ///< $CUDA_VISIBLE_DEVICES, where it is set
};

/// Cores that this process may use, GPUs that nvidia-smi or the driver lists, $CUDA_VISIBLE_DEVICES.
Machine look_at_machine();

/// GPUs in the output of `nvidia-smi --query-gpu=index,name,memory.total --format=csv,noheader,nounits`.
std::vector<Gpu> parse_gpus(const std::string& csv);

/// One slot for each visible GPU, otherwise shares of the cores, one for every two. `count` and `threads` are
/// the user's wishes, 0 for none; with GPUs `count` is an upper bound.
/// Throws: Error for a negative wish.
std::vector<Slot> plan_slots(const Machine& machine, int count, int threads);

}  // namespace abl::agent
