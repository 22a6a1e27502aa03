// SPDX-License-Identifier: Apache-2.0
#include "storage/resource_store.h"

#include <algorithm>

namespace abl::storage {
namespace {

template <class T>
std::optional<T> value_at(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  if constexpr (std::is_same_v<T, double>)
    return row.real(column);
  else
    return static_cast<T>(row.integer(column));
}

/// Of the columns of resource_sample behind run_id.
ResourceSample read_sample(const Statement& row) {
  return {.at_ms = static_cast<std::uint64_t>(row.integer(0)),
          .over_ms = static_cast<std::uint32_t>(row.integer(1)),
          .cpu_cores = value_at<double>(row, 2),
          .memory_bytes = value_at<std::int64_t>(row, 3),
          .read_bytes_per_s = value_at<double>(row, 4),
          .written_bytes_per_s = value_at<double>(row, 5),
          .gpu = value_at<double>(row, 6),
          .gpu_memory_bytes = value_at<std::int64_t>(row, 7),
          .free_bytes = value_at<std::int64_t>(row, 8),
          .data_wait_ms = value_at<std::uint32_t>(row, 9),
          .data_of_ms = value_at<std::uint32_t>(row, 10)};
}

/// What a few samples add to a run's line of resource_use.
struct Sums {
  std::int64_t samples = 0, left_out = 0, last_ms = -1, over_ms = 0;
  double cpu_ms = 0, gpu_ms = 0, read_bytes = 0, written_bytes = 0;
  std::int64_t cpu_over_ms = 0, gpu_over_ms = 0, disk_over_ms = 0, data_wait_ms = 0, data_of_ms = 0;
  std::int64_t peak_memory = -1, peak_gpu_memory = -1, least_free = -1;  ///< -1: none

  void add(const ResourceSample& sample) {
    const auto over = std::int64_t{sample.over_ms};
    const double over_s = static_cast<double>(over) / 1000;
    ++samples;
    over_ms += over;
    if (sample.cpu_cores) cpu_ms += *sample.cpu_cores * static_cast<double>(over), cpu_over_ms += over;
    if (sample.gpu) gpu_ms += *sample.gpu * static_cast<double>(over), gpu_over_ms += over;
    if (sample.read_bytes_per_s && sample.written_bytes_per_s) {
      read_bytes += *sample.read_bytes_per_s * over_s;
      written_bytes += *sample.written_bytes_per_s * over_s;
      disk_over_ms += over;
    }
    if (sample.data_wait_ms && sample.data_of_ms)
      data_wait_ms += *sample.data_wait_ms, data_of_ms += *sample.data_of_ms;
    peak_memory = std::max(peak_memory, sample.memory_bytes.value_or(-1));
    peak_gpu_memory = std::max(peak_gpu_memory, sample.gpu_memory_bytes.value_or(-1));
    if (sample.free_bytes && (least_free < 0 || *sample.free_bytes < least_free))
      least_free = *sample.free_bytes;
  }
};

std::optional<std::int64_t> known(std::int64_t value) {
  return value < 0 ? std::nullopt : std::optional{value};
}

}  // namespace

bool ResourceStore::add(RunId run, const std::vector<ResourceSample>& samples) {
  struct Known {
    std::int64_t samples = 0, last_ms = -1;
  };
  const Known before = db_.prepared("SELECT samples, last_ms FROM resource_use WHERE run_id = :run")
                           .bind(":run", run)
                           .one([](const Statement& row) {
                             return Known{row.integer(0), row.integer(1)};
                           })
                           .value_or(Known{});
  Sums sums{.last_ms = before.last_ms};
  for (const ResourceSample& sample : samples) {
    const auto at = static_cast<std::int64_t>(sample.at_ms);
    if (before.samples + sums.samples >= kMostSamples) {
      if (at > sums.last_ms) ++sums.left_out, sums.last_ms = at;
      continue;
    }
    db_.prepared(R"sql(
        INSERT OR IGNORE INTO resource_sample (run_id, at_ms, over_ms, cpu_cores, memory_bytes, read_bytes_per_s,
          written_bytes_per_s, gpu, gpu_memory_bytes, free_bytes, data_wait_ms, data_of_ms)
        VALUES (:run, :at, :over, :cpu, :memory, :read, :written, :gpu, :gpu_memory, :free, :wait, :of))sql")
        .bind(":run", run)
        .bind(":at", at)
        .bind(":over", sample.over_ms)
        .bind(":cpu", sample.cpu_cores)
        .bind(":memory", sample.memory_bytes)
        .bind(":read", sample.read_bytes_per_s)
        .bind(":written", sample.written_bytes_per_s)
        .bind(":gpu", sample.gpu)
        .bind(":gpu_memory", sample.gpu_memory_bytes)
        .bind(":free", sample.free_bytes)
        .bind(":wait", sample.data_wait_ms)
        .bind(":of", sample.data_of_ms)
        .run();
    if (db_.changes() == 0) continue;  // said again
    sums.add(sample);
    sums.last_ms = std::max(sums.last_ms, at);
  }
  if (sums.samples == 0 && sums.left_out == 0) return false;
  db_.prepared(R"sql(
      INSERT INTO resource_use (run_id, samples, left_out, last_ms, over_ms, cpu_ms, cpu_over_ms, peak_memory_bytes, read_bytes,
        written_bytes, disk_over_ms, gpu_ms, gpu_over_ms, peak_gpu_memory_bytes, least_free_bytes, data_wait_ms, data_of_ms)
      VALUES (:run, :samples, :left_out, :last, :over, :cpu, :cpu_over, :memory, :read, :written, :disk_over, :gpu, :gpu_over,
        :gpu_memory, :free, :wait, :of)
      ON CONFLICT (run_id) DO UPDATE SET samples = samples + excluded.samples, left_out = left_out + excluded.left_out,
        last_ms = excluded.last_ms, over_ms = over_ms + excluded.over_ms, cpu_ms = cpu_ms + excluded.cpu_ms,
        cpu_over_ms = cpu_over_ms + excluded.cpu_over_ms,
        peak_memory_bytes = COALESCE(MAX(peak_memory_bytes, excluded.peak_memory_bytes), peak_memory_bytes, excluded.peak_memory_bytes),
        read_bytes = read_bytes + excluded.read_bytes, written_bytes = written_bytes + excluded.written_bytes,
        disk_over_ms = disk_over_ms + excluded.disk_over_ms, gpu_ms = gpu_ms + excluded.gpu_ms,
        gpu_over_ms = gpu_over_ms + excluded.gpu_over_ms,
        peak_gpu_memory_bytes = COALESCE(MAX(peak_gpu_memory_bytes, excluded.peak_gpu_memory_bytes), peak_gpu_memory_bytes, excluded.peak_gpu_memory_bytes),
        least_free_bytes = COALESCE(MIN(least_free_bytes, excluded.least_free_bytes), least_free_bytes, excluded.least_free_bytes),
        data_wait_ms = data_wait_ms + excluded.data_wait_ms, data_of_ms = data_of_ms + excluded.data_of_ms)sql")
      .bind(":run", run)
      .bind(":samples", sums.samples)
      .bind(":left_out", sums.left_out)
      .bind(":last", sums.last_ms)
      .bind(":over", sums.over_ms)
      .bind(":cpu", sums.cpu_ms)
      .bind(":cpu_over", sums.cpu_over_ms)
      .bind(":memory", known(sums.peak_memory))
      .bind(":read", sums.read_bytes)
      .bind(":written", sums.written_bytes)
      .bind(":disk_over", sums.disk_over_ms)
      .bind(":gpu", sums.gpu_ms)
      .bind(":gpu_over", sums.gpu_over_ms)
      .bind(":gpu_memory", known(sums.peak_gpu_memory))
      .bind(":free", known(sums.least_free))
      .bind(":wait", sums.data_wait_ms)
      .bind(":of", sums.data_of_ms)
      .run();
  return true;
}

std::optional<ResourceUse> ResourceStore::use(RunId run) const {
  return db_
      .prepared(R"sql(
      SELECT samples, left_out, over_ms / 1000.0, CASE WHEN cpu_over_ms > 0 THEN cpu_ms / cpu_over_ms END,
             CASE WHEN gpu_over_ms > 0 THEN gpu_ms / gpu_over_ms END,
             CASE WHEN data_of_ms > 0 THEN 1.0 * data_wait_ms / data_of_ms END,
             CASE WHEN disk_over_ms > 0 THEN read_bytes END, CASE WHEN disk_over_ms > 0 THEN written_bytes END,
             peak_memory_bytes, peak_gpu_memory_bytes, least_free_bytes
      FROM resource_use WHERE run_id = :run)sql")
      .bind(":run", run)
      .one([](const Statement& row) {
        return ResourceUse{.samples = static_cast<std::uint32_t>(row.integer(0)),
                           .left_out = static_cast<std::uint32_t>(row.integer(1)),
                           .seconds = row.real(2),
                           .cpu_cores = value_at<double>(row, 3),
                           .gpu = value_at<double>(row, 4),
                           .data_wait = value_at<double>(row, 5),
                           .read_bytes = value_at<double>(row, 6),
                           .written_bytes = value_at<double>(row, 7),
                           .peak_memory_bytes = value_at<std::int64_t>(row, 8),
                           .peak_gpu_memory_bytes = value_at<std::int64_t>(row, 9),
                           .least_free_bytes = value_at<std::int64_t>(row, 10)};
      });
}

std::vector<ResourceSample> ResourceStore::of(RunId run, std::uint64_t from_ms, std::uint64_t to_ms) const {
  return db_
      .prepared(R"sql(
      SELECT at_ms, over_ms, cpu_cores, memory_bytes, read_bytes_per_s, written_bytes_per_s, gpu, gpu_memory_bytes,
             free_bytes, data_wait_ms, data_of_ms
      FROM resource_sample WHERE run_id = :run AND at_ms BETWEEN :from AND :to ORDER BY at_ms)sql")
      .bind(":run", run)
      .bind(":from", static_cast<std::int64_t>(from_ms))
      .bind(":to", static_cast<std::int64_t>(to_ms))
      .all(read_sample);
}

void ResourceStore::thin(RunId run, std::uint32_t most) {
  const auto samples = of(run, 0, INT64_MAX);
  if (samples.size() <= most) return;
  // each mean over the time of those samples that have it
  db_.prepared(R"sql(
      INSERT OR REPLACE INTO resource_sample
      SELECT run_id, MAX(at_ms), SUM(over_ms), SUM(cpu_cores * over_ms) / SUM(IIF(cpu_cores IS NULL, NULL, over_ms)),
             MAX(memory_bytes), SUM(read_bytes_per_s * over_ms) / SUM(IIF(read_bytes_per_s IS NULL, NULL, over_ms)),
             SUM(written_bytes_per_s * over_ms) / SUM(IIF(written_bytes_per_s IS NULL, NULL, over_ms)),
             SUM(gpu * over_ms) / SUM(IIF(gpu IS NULL, NULL, over_ms)), MAX(gpu_memory_bytes), MIN(free_bytes),
             SUM(data_wait_ms), SUM(data_of_ms)
      FROM (SELECT *, NTILE(:most) OVER (ORDER BY at_ms) AS part FROM resource_sample WHERE run_id = :run)
      GROUP BY part)sql")
      .bind(":run", run)
      .bind(":most", most)
      .run();
  // what stands now for the others is the last of each part; the parts as they were made above
  std::size_t next = 0;
  for (std::uint32_t part = 0; part < most; ++part) {
    const std::size_t size = samples.size() / most + (part < samples.size() % most ? 1 : 0);
    db_.prepared("DELETE FROM resource_sample WHERE run_id = :run AND at_ms >= :from AND at_ms < :last")
        .bind(":run", run)
        .bind(":from", static_cast<std::int64_t>(samples[next].at_ms))
        .bind(":last", static_cast<std::int64_t>(samples[next + size - 1].at_ms))
        .run();
    next += size;
  }
}

}  // namespace abl::storage
