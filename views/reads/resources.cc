// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "storage/resource_store.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::ResourceSample;
using storage::ResourceStore;
using storage::Transaction;

constexpr std::uint32_t kMostOfASeries = 5'000;
constexpr double kLeastGap = 5;  // seconds without a sample that are told

/// A share of what was reported; nothing where nothing was.
std::optional<double> data_wait_of(const ResourceSample& sample) {
  if (!sample.data_wait_ms || !sample.data_of_ms || *sample.data_of_ms == 0) return std::nullopt;
  return static_cast<double>(*sample.data_wait_ms) / *sample.data_of_ms;
}

template <auto Member>
std::optional<double> value_of(const ResourceSample& sample) {
  const auto& value = sample.*Member;
  return value ? std::optional{static_cast<double>(*value)} : std::nullopt;
}

struct Quantity {
  const char *name, *unit;
  std::optional<double> (*value)(const ResourceSample&);
};
constexpr std::array kQuantities{
    Quantity{"cpu", "cores", value_of<&ResourceSample::cpu_cores>},
    Quantity{"memory", "bytes", value_of<&ResourceSample::memory_bytes>},
    Quantity{"gpu", "share", value_of<&ResourceSample::gpu>},
    Quantity{"gpu_memory", "bytes", value_of<&ResourceSample::gpu_memory_bytes>},
    Quantity{"read", "bytes/s", value_of<&ResourceSample::read_bytes_per_s>},
    Quantity{"written", "bytes/s", value_of<&ResourceSample::written_bytes_per_s>},
    Quantity{"data_wait", "share", data_wait_of},
    Quantity{"free", "bytes", value_of<&ResourceSample::free_bytes>}};

/// Seconds of a bucket, so that a stretch has no more than so many: 1, 2 or 5 and a power of ten, so that
/// what is appended changes the last one alone.
double bucket_for(double seconds, std::uint32_t points) {
  const double least = std::max(seconds / std::max(1U, points - 1), 1e-3);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  return 10 * power;
}

/// Adds up samples of one bucket: means are over the time that samples are of.
class Bucket {
 public:
  void add(double at, double value, double weight) {
    at_ += at;
    ++count_;
    const double share = std::max(weight, 1e-3);
    sum_ += value * share;
    weight_ += share;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  void end(v1::ResourceSeries& series) {
    if (count_ == 0) return;
    series.add_at_s(at_ / count_);
    series.add_means(std::clamp(sum_ / weight_, low_, high_));
    series.add_lows(low_);
    series.add_highs(high_);
    *this = {};
  }

 private:
  double at_ = 0, sum_ = 0, weight_ = 0;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;
  int count_ = 0;
};

double seconds(std::uint64_t ms) { return static_cast<double>(ms) / 1000; }

void add_series(const std::vector<ResourceSample>& samples, double bucket_s, v1::ResourcesResponse& message) {
  for (const Quantity& quantity : kQuantities) {
    v1::ResourceSeries series;
    Bucket bucket;
    double present = -1;
    for (const ResourceSample& sample : samples) {
      const double at = seconds(sample.at_ms);
      if (const double of = bucket_s > 0 ? std::floor(at / bucket_s) : 0; of != present) {
        bucket.end(series);
        present = of;
      }
      const auto value = quantity.value(sample);
      if (!value) continue;
      if (bucket_s > 0) {
        bucket.add(at, *value, quantity.value == data_wait_of ? *sample.data_of_ms : sample.over_ms);
        continue;
      }
      series.add_at_s(at);
      series.add_means(*value);
    }
    bucket.end(series);
    if (series.at_s().empty()) continue;
    series.set_name(quantity.name);
    series.set_unit(quantity.unit);
    *message.add_series() = std::move(series);
  }
}

/// Where a sample is not of all the time since the one before.
void add_gaps(const std::vector<ResourceSample>& samples, double bucket_s, v1::ResourcesResponse& message) {
  const double least = std::max(kLeastGap, bucket_s);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const double from = seconds(samples[i - 1].at_ms),
                 to = seconds(samples[i].at_ms -
                              std::min<std::uint64_t>(samples[i].at_ms, samples[i].over_ms));
    if (to - from < least) continue;
    auto& gap = *message.add_gaps();
    gap.set_from_s(from);
    gap.set_to_s(to);
  }
}

std::string why_none(const storage::RunRecord& run, const storage::TrialRecord& trial) {
  constexpr Milliseconds kFirst{2000};
  if (trial.command_json == storage::kImportedCommand) return "its results were imported";
  if (!run.started && run.ended) return "its program was never started";
  if (!run.started) return "its program has not started yet";
  if (!run.ended) return "the first sample is taken a few seconds after the run starts";
  if (const auto took = run.took.value_or(std::chrono::floor<Milliseconds>(*run.ended - *run.started));
      took < 2 * kFirst)
    return "the run ended before its first sample, a few seconds after it started";
  return "its worker sent no samples: it is an older release, or cannot read /proc";
}

/// The second of a request, in milliseconds.
std::uint64_t ms_asked(const Query& query, const char* parameter, std::uint64_t otherwise) {
  return query.has(parameter) ? query.long_number(parameter) * 1000 : otherwise;
}

}  // namespace

v1::ResourceUse resource_use(const storage::ResourceUse& use) {
  v1::ResourceUse message;
  message.set_samples(use.samples);
  message.set_seconds(use.seconds);
  const auto set = [&](const auto& value, auto setter) {
    if (value) (message.*setter)(static_cast<std::uint64_t>(std::llround(static_cast<double>(*value))));
  };
  if (use.cpu_cores) message.set_cpu_cores(*use.cpu_cores);
  if (use.gpu) message.set_gpu(*use.gpu);
  if (use.data_wait) message.set_data_wait(*use.data_wait);
  set(use.peak_memory_bytes, &v1::ResourceUse::set_peak_memory_bytes);
  set(use.peak_gpu_memory_bytes, &v1::ResourceUse::set_peak_gpu_memory_bytes);
  set(use.read_bytes, &v1::ResourceUse::set_read_bytes);
  set(use.written_bytes, &v1::ResourceUse::set_written_bytes);
  set(use.least_free_bytes, &v1::ResourceUse::set_least_free_bytes);
  return message;
}

v1::ResourcesResponse resources(storage::Database& db, storage::RunId id, std::uint64_t from_ms,
                                std::uint64_t to_ms, std::uint32_t points) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::TrialStore trials{db};
  const auto run = trials.run(id);  // throws kNotFound
  const ResourceStore store{db};
  v1::ResourcesResponse message;
  message.set_run(id);
  if (run.started) *message.mutable_started() = to_proto(*run.started);
  const auto use = store.use(id);
  if (!use) {
    message.set_why_none(why_none(run, trials.get(run.trial)));
    return message;
  }
  *message.mutable_use() = resource_use(*use);
  message.set_left_out(use->left_out);
  const auto samples = store.of(id, from_ms, to_ms);
  message.set_samples(static_cast<std::uint32_t>(samples.size()));
  const double bucket_s =
      samples.size() <= points
          ? 0
          : bucket_for(seconds(samples.back().at_ms) - seconds(samples.front().at_ms), points);
  message.set_bucket_s(bucket_s);
  add_series(samples, bucket_s, message);
  add_gaps(samples, bucket_s, message);
  return message;
}

extern const Read kResourcesRead{
    .path = "runs/*/resources",
    .of = &kRunOfPath,
    .about =
        "What the run took of its machine over time: all samples of a range, or their means, lowest and "
        "highest in buckets",
    .parameters = {{.name = "from",
                    .about = "First second, since the start of its program",
                    .number = Range{.otherwise = 0}},
                   {.name = "to", .about = "Last second", .number = Range{}},
                   {.name = "points",
                    .about = "Points of a series at most",
                    .number = Range{.lowest = 2, .highest = kMostOfASeries, .otherwise = 600}}},
    .message = v1::ResourcesResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          const std::uint64_t from = ms_asked(query, "from", 0),
                              to = ms_asked(query, "to", std::numeric_limits<std::int64_t>::max());
          if (to < from)
            throw Error{Code::kInvalidArgument,
                        fmt::format("to: {} is before from: {}", query.text("to"), query.text("from"))};
          return to_json(resources(stored.db, parse_id("run", query.name), from, to, query.number("points")));
        },
};

}  // namespace abl::views
