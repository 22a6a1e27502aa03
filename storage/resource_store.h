// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What a run took of its machine at one moment, as its worker saw it. What could not be had is absent.
struct ResourceSample {
  std::uint64_t at_ms = 0;    ///< since the start of its program
  std::uint32_t over_ms = 0;  ///< that the means below are over
  std::optional<double> cpu_cores{};
  std::optional<std::int64_t> memory_bytes{};
  std::optional<double> read_bytes_per_s{}, written_bytes_per_s{};
  std::optional<double> gpu{};  ///< 0 to 1
  std::optional<std::int64_t> gpu_memory_bytes{}, free_bytes{};
  std::optional<std::uint32_t> data_wait_ms{}, data_of_ms{};
};

/// Over all samples of a run: docs of ablate.v1.ResourceUse.
struct ResourceUse {
  std::uint32_t samples = 0, left_out = 0;
  double seconds = 0;
  std::optional<double> cpu_cores{}, gpu{}, data_wait{}, read_bytes{}, written_bytes{};
  std::optional<std::int64_t> peak_memory_bytes{}, peak_gpu_memory_bytes{}, least_free_bytes{};
};

/// Samples of what runs take of their machines: no part of a result. Thread: the connection's.
class ResourceStore {
 public:
  /// A run keeps its first so many. Workers sample ever more rarely: a week has about 4,300 of them, a year
  /// 6,700.
  static constexpr std::uint32_t kMostSamples = 10'000;

  explicit ResourceStore(Database& db) : db_{db} {}

  /// Samples by ascending time. One that is there already, by its time, is not stored again and counts once.
  /// Returns: whether any was new.
  bool add(RunId run, const std::vector<ResourceSample>& samples);
  /// Nothing where the run has no samples.
  std::optional<ResourceUse> use(RunId run) const;
  /// Those of a stretch of time, both ends included, by ascending time.
  std::vector<ResourceSample> of(RunId run, std::uint64_t from_ms, std::uint64_t to_ms) const;
  /// Makes a run's samples at most `most`, each of them of as many that followed each other: means over the
  /// time of all of them, and the highest of memory. What is known over all of them stays as it is.
  void thin(RunId run, std::uint32_t most);

 private:
  Database& db_;
};

}  // namespace abl::storage
