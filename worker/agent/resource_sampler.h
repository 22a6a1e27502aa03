// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/clock.h"
#include "worker/agent/processes.h"
#include "worker/agent/trainer_output.h"

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

/// A run whose program was just started.
struct SampledRun {
  std::uint32_t run = 0;
  std::string token;
  pid_t leader = 0;                              ///< its program
  std::filesystem::path directory;               ///< its folder
  std::vector<std::string> gpus{};               ///< of its slots, as CUDA_VISIBLE_DEVICES has them
  std::optional<std::filesystem::path> group{};  ///< its part of cgroup v2
};

/// How long after one sample of a run the next is due, when it has run for so long: its 600th part, but no
/// less than `shortest`. So a week has about 4,300 samples.
Milliseconds sample_interval(Milliseconds age, Milliseconds shortest);

/// Looks now and then at what the machine's runs take of it, on a thread of its own: all runs that are due in
/// one look at /proc, and no two looks within the shortest interval. Thread: any.
class ResourceSampler {
 public:
  /// Takes samples, on the sampler's thread; `end`: nothing more comes of a run.
  struct Sink {
    std::function<void(std::uint32_t run, const std::string& token, ablate::v1::ResourceSample)> add;
    std::function<void(std::uint32_t run, const std::string& token)> end;
  };
  static constexpr Milliseconds kShortest{2000};

  explicit ResourceSampler(Sink sink, Milliseconds shortest = kShortest);
  ~ResourceSampler();

  /// As long as it lives the run is sampled.
  class Watch {
   public:
    Watch(ResourceSampler& sampler, std::uint64_t number) : sampler_{sampler}, number_{number} {}
    ~Watch() { sampler_.end(number_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    /// What its trainer has reported.
    void waited(const DataWait& wait) { sampler_.waited(number_, wait); }

   private:
    ResourceSampler& sampler_;
    const std::uint64_t number_;
  };
  std::unique_ptr<Watch> watch(SampledRun run);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Watched {
    explicit Watched(SampledRun what);
    const SampledRun run;
    RunUsage usage;            ///< of the sampler's thread
    double gpu_sum = 0;        ///< likewise, of looks since the last sample
    int gpu_looks = 0;         ///< likewise
    const Milliseconds began;  ///< by the clock that goes on while the machine sleeps
    SteadyTime sampled = std::chrono::steady_clock::now();  ///< or began
    SteadyTime due{};
    DataWait wait{};
  };
  using Runs = std::map<std::uint64_t, std::shared_ptr<Watched>>;

  void end(std::uint64_t number);
  void waited(std::uint64_t number, const DataWait& wait);
  void work(const std::stop_token& stop);
  void look_at_gpus(const std::vector<std::shared_ptr<Watched>>& runs);
  std::optional<ablate::v1::ResourceSample> sample(Watched& watched, const ProcessTable& table);

  const Sink sink_;
  const Milliseconds shortest_;
  FoldersOfChildren folders_;  ///< of the sampler's thread
  Nvml nvml_;                  ///< likewise
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Runs runs_;
  std::uint64_t last_number_ = 0;
  std::jthread thread_;
};

}  // namespace abl::agent
