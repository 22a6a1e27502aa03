// SPDX-License-Identifier: Apache-2.0
// The cost of reading the points of a chart, for runs with 10,000 to 4,000,000 points of one metric:
//   build/bench/curve_reads [REPETITIONS]      (7)
// From the results file to the answer's JSON, 1,200 pixels wide: the whole, a hundredth of it, and what a
// page asks for after something was appended; and the cost of appending 1,000 points. Medians with the lowest
// and highest of the repetitions. Nothing is asserted.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "views/read.h"

namespace {

using namespace abl;
using namespace std::chrono_literals;

constexpr std::uint32_t kBatch = 1000;

void measure(const std::string& what, int repetitions, const std::function<std::size_t()>& work) {
  std::vector<double> times;
  std::size_t bytes = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    bytes = work();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count());
  }
  std::ranges::sort(times);
  fmt::print("  {:<28} {:8.1f} ms ({:.1f} to {:.1f})", what, times[times.size() / 2], times.front(),
             times.back());
  if (bytes > 0) fmt::print("  {:7} bytes", bytes);
  fmt::print("\n");
}

storage::Series points(std::uint32_t first, std::uint32_t count) {
  storage::Series series{.name = "train/loss"};
  for (std::uint32_t step = first; step < first + count; ++step) {
    series.steps.push_back(step);
    series.values.push_back(2 / (1 + step * 1e-4) + 0.1 * std::sin(step * 12.9898));
    series.times_ms.push_back(1'700'000'000'000 + std::int64_t{step} * 130);
  }
  return series;
}

/// A run under way, in an empty store.
storage::RunId run_in(storage::Database& db, Time now) {
  storage::NewSweep sweep{
      .name = "bench", .file = "bench.yaml", .text = "name: bench", .canonical = "{}", .canonical_hash = "c"};
  sweep.rows.push_back({.id = "a", .label = "a", .set_json = "{}", .config_hash = "a"});
  sweep.seeds = {0};
  const std::vector<storage::NewTrial> trials_of_sweep{{.config = "{}", .config_hash = sha256_hex("a")}};
  storage::SweepStore{db}.insert(sweep, trials_of_sweep, now);
  storage::TrialStore trials{db};
  const auto run = trials.lease(1, "bench-1", "bench", now, now + 24h).value().run;
  trials.start(run, {.total_steps = 4'000'000}, now);
  return run;
}

void bench(const std::filesystem::path& file, std::uint32_t size, int repetitions) {
  storage::Database db{file, storage::Database::Mode::kWrite};
  const storage::RunId run = run_in(db, Time{} + 1'700'000'000'000ms);
  std::uint32_t stored = 0;
  const auto append = [&](std::uint32_t count) {
    storage::Transaction transaction{db, storage::Transaction::kImmediate};
    storage::MetricStore{db}.append(run, {points(stored, count)});
    transaction.commit();
    stored += count;
  };
  while (stored < size) append(std::min<std::uint32_t>(100'000, size - stored));

  views::TableCache tables{file};
  const auto reads = views::all_reads();
  const auto* curves = *std::ranges::find_if(reads, [](const auto* read) { return read->path == "curves"; });
  const auto read = [&](std::vector<std::pair<std::string, std::string>> parameters) {
    parameters.insert(parameters.end(), {{"run", std::to_string(run)}, {"width", "1200"}});
    return curves
        ->answer({.name = {}, .parameters = parameters, .declared = curves->parameters}, {db, tables})
        .size();
  };
  fmt::print("{} points\n", size);
  measure("the whole", repetitions, [&] { return read({}); });
  measure("the whole, with times", repetitions, [&] { return read({{"times", "1"}}); });
  measure("a hundredth", repetitions, [&] {
    return read({{"from", std::to_string(size / 2)}, {"to", std::to_string(size / 2 + size / 100 - 1)}});
  });
  measure("append 1,000", repetitions, [&] { return append(kBatch), std::size_t{0}; });
  measure("the last 1,000", repetitions, [&] { return read({{"from", std::to_string(stored - kBatch)}}); });
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  std::string folder = (std::filesystem::temp_directory_path() / "curve-reads-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  for (const std::uint32_t size : {10'000U, 100'000U, 1'000'000U, 4'000'000U})
    bench(std::filesystem::path{folder} / fmt::format("{}.db", size), size, repetitions);
  std::filesystem::remove_all(folder);
  return 0;
}
