// SPDX-License-Identifier: Apache-2.0
#include "scheduler/run_reports.h"

#include <cmath>
#include <optional>

#include "storage/resource_store.h"
#include "storage/sweep_store.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunResources;
using storage::ResourceSample;

/// Numbers beyond these are no machine's: a thousand years, 2^53 bytes, a million cores.
constexpr std::uint64_t kLongestMs = 1000ULL * 366 * 86'400'000, kMostBytes = 1ULL << 53;
constexpr double kMostCores = 1e6;
/// Of one run in one heartbeat: a worker that was away says the rest with those that follow.
constexpr int kMostOfARun = 2000;

bool within(double value, double most) { return std::isfinite(value) && value >= 0 && value <= most; }

/// Nothing where it is not to be believed.
std::optional<ResourceSample> record_of(const ablate::v1::ResourceSample& said) {
  const bool is_sound = said.at_ms() <= kLongestMs && within(said.cpu_cores(), kMostCores) &&
                        said.memory_bytes() <= kMostBytes &&
                        within(said.read_bytes_per_s(), static_cast<double>(kMostBytes)) &&
                        within(said.written_bytes_per_s(), static_cast<double>(kMostBytes)) &&
                        within(said.gpu(), 1) && said.gpu_memory_bytes() <= kMostBytes &&
                        said.free_bytes() <= kMostBytes && said.data_wait_ms() <= said.data_of_ms();
  if (!is_sound) return std::nullopt;
  ResourceSample sample{.at_ms = said.at_ms(), .over_ms = said.over_ms()};
  if (said.has_cpu_cores()) sample.cpu_cores = said.cpu_cores();
  if (said.has_memory_bytes()) sample.memory_bytes = static_cast<std::int64_t>(said.memory_bytes());
  if (said.has_read_bytes_per_s()) sample.read_bytes_per_s = said.read_bytes_per_s();
  if (said.has_written_bytes_per_s()) sample.written_bytes_per_s = said.written_bytes_per_s();
  if (said.has_gpu()) sample.gpu = said.gpu();
  if (said.has_gpu_memory_bytes())
    sample.gpu_memory_bytes = static_cast<std::int64_t>(said.gpu_memory_bytes());
  if (said.has_free_bytes()) sample.free_bytes = static_cast<std::int64_t>(said.free_bytes());
  if (said.has_data_of_ms()) sample.data_wait_ms = said.data_wait_ms(), sample.data_of_ms = said.data_of_ms();
  return sample;
}

/// Whether the run is this worker's, and of this results file. A run of an older store has no token.
std::optional<storage::TrialId> trial_of(storage::Database& db, const std::string& worker,
                                         const RunResources& said) {
  return db
      .prepared(R"sql(SELECT trial_id FROM run WHERE id = :run AND worker = :worker
                      AND (token = '' OR token = :token))sql")
      .bind(":run", said.run())
      .bind(":worker", worker)
      .bind(":token", said.token())
      .one([](const storage::Statement& row) { return static_cast<storage::TrialId>(row.integer(0)); });
}

}  // namespace

std::vector<storage::Change> store_resources(
    storage::Database& db, const std::string& worker,
    const google::protobuf::RepeatedPtrField<RunResources>& resources) {
  std::vector<storage::Change> changes;
  for (const RunResources& said : resources) {
    const auto trial = trial_of(db, worker, said);
    if (!trial) continue;
    std::vector<ResourceSample> samples;
    for (const auto& each : said.samples()) {
      if (samples.size() >= kMostOfARun) break;
      if (auto sample = record_of(each)) samples.push_back(*sample);
    }
    if (!storage::ResourceStore{db}.add(said.run(), samples)) continue;
    for (const std::string& sweep : storage::SweepStore{db}.names_of(*trial))
      changes.push_back({.sweep = sweep, .run = said.run()});
  }
  return changes;
}

}  // namespace abl::scheduler
