// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "storage/buckets.h"
#include "storage/metric_store.h"
#include "storage/part_store.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Bucketer;
using storage::StepRange;
using storage::Transaction;

constexpr std::uint64_t kMostCurvePoints = 125'000;
/// A second or two: runs beyond that are left out, to be asked for again.
constexpr std::uint64_t kMostPointsLookedAt = 16'000'000;
constexpr std::uint32_t kMostWidth = 10'000;
constexpr std::uint32_t kWidestBucket = 1U << 31;
/// Points to a bucket of the width, up to which a reader may hold a curve point by point that has grown since
/// it was read as a whole (web/app/src/curves/held.ts).
constexpr std::uint64_t kWholeToWidth = 10;

struct CurvesWanted {
  std::set<storage::RunId> runs;
  std::vector<std::string> names;  ///< empty: all
  std::optional<std::uint32_t> from, to;
  std::uint32_t width = 0;   ///< buckets of a curve, at most
  std::uint32_t bucket = 0;  ///< steps of those that the reader holds; 0: it holds none
  bool times = false;
};

/// The metrics of a run, and the most that can be read and sent of each.
struct RunToDraw {
  storage::RunId run = 0;
  std::vector<storage::MetricStore::Extent> metrics;

  std::uint64_t points(const CurvesWanted& wanted) const {
    std::uint64_t points = 0;
    for (const auto& metric : metrics) {
      const std::uint64_t from = std::max(metric.steps.from, wanted.from.value_or(0));
      const std::uint64_t to = std::min(metric.steps.to, wanted.to.value_or(metric.steps.to));
      points += to < from ? 0 : std::min(metric.said, to - from + 1);
    }
    return points;
  }
};

std::vector<RunToDraw> runs_to_draw(storage::Database& db, const CurvesWanted& wanted) {
  const storage::MetricStore store{db};
  const storage::TrialStore runs{db};
  std::vector<RunToDraw> all;
  for (const auto id : wanted.runs) {
    (void)runs.run(id);  // an unknown run is an error, not an empty answer
    all.push_back({id, store.extents(id, wanted.names)});
  }
  return all;
}

/// Takes off those runs for whose points there is no room in one read, and says how many.
std::uint32_t leave_out(std::vector<RunToDraw>& all, const CurvesWanted& wanted) {
  std::uint64_t points = 0;
  std::size_t kept = 0;
  while (kept < all.size() &&
         (points += all[kept].points(wanted), kept == 0 || points <= kMostPointsLookedAt))
    ++kept;
  const auto left_out = static_cast<std::uint32_t>(all.size() - kept);
  all.resize(kept);
  return left_out;
}

/// Of the width that was asked for, as much as all of these have room for.
std::uint32_t width_of(const std::vector<RunToDraw>& all, std::uint32_t asked) {
  std::uint64_t curves = 0;
  for (const auto& run : all) curves += run.metrics.size();
  const std::uint64_t most = kMostCurvePoints / Bucketer::kMostOfBucket / std::max<std::uint64_t>(1, curves);
  if (most == 0)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} curves: an answer has {} at most; name fewer runs or metrics", curves,
                            kMostCurvePoints / Bucketer::kMostOfBucket)};
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(asked, most));
}

/// Of how many points a series is sent whole, in place of its buckets. What is read to be appended to buckets
/// goes into buckets as wide.
std::size_t whole_up_to(const CurvesWanted& wanted, std::uint64_t said, StepRange range, std::uint32_t width,
                        std::uint32_t bucket_steps) {
  const bool held_in_buckets = wanted.bucket > 0 && said > kWholeToWidth * wanted.width;
  const std::size_t buckets =
      held_in_buckets ? range.to / bucket_steps - range.from / bucket_steps + 1 : std::size_t{width};
  return std::min<std::size_t>(buckets, width) * Bucketer::kMostOfBucket;
}

/// The steps that are looked at: as asked, otherwise all that one of the metrics has.
StepRange range_of(const std::vector<RunToDraw>& all, const CurvesWanted& wanted) {
  StepRange range{0xffff'ffff, 0};
  for (const auto& run : all)
    for (const auto& metric : run.metrics) {
      range.from = std::min(range.from, metric.steps.from);
      range.to = std::max(range.to, metric.steps.to);
    }
  range.from = wanted.from.value_or(range.from);
  range.to = std::max(range.from, wanted.to.value_or(range.to));
  return range;
}

void add_curve(v1::CurvesResponse& message, storage::RunId run, std::uint64_t said,
               const storage::BucketedSeries& curve, bool times) {
  auto& added = *message.add_curves();
  added.set_run(run);
  added.set_name(curve.series.name);
  added.set_said(said);
  added.set_points(curve.points);
  added.set_not_finite(curve.not_finite);
  added.set_bucket_steps(curve.bucket_steps);
  added.mutable_steps()->Add(curve.series.steps.begin(), curve.series.steps.end());
  added.mutable_values()->Add(curve.series.values.begin(), curve.series.values.end());
  if (times) added.mutable_times_ms()->Add(curve.series.times_ms.begin(), curve.series.times_ms.end());
  for (const auto& bucket : curve.buckets) {
    added.add_bucket_middles(bucket.middle);
    added.add_bucket_points(bucket.points);
    added.add_bucket_not_finite(bucket.not_finite);
    added.add_bucket_means(bucket.mean);
  }
}

std::int64_t ms_of(Time time) { return time.time_since_epoch().count(); }

/// A positive number of a trial's section `recipe`; 0: it has none, as a command's.
double of_recipe(const nlohmann::json& document, const char* key) {
  if (!document.is_object()) return 0;
  const auto recipe = document.find("recipe");
  if (recipe == document.end() || !recipe->is_object()) return 0;
  const auto value = recipe->find(key);
  return value != recipe->end() && value->is_number() ? value->get<double>() : 0;
}

v1::CurveRun curve_run(storage::Database& db, storage::RunId id) {
  const storage::TrialStore store{db};
  const auto run = store.run(id);
  const auto trial = store.get(run.trial);
  const auto document = nlohmann::json::parse(trial.config, nullptr, false);
  const double epochs = of_recipe(document, "epochs"), batch = of_recipe(document, "batch");
  v1::CurveRun message;
  message.set_run(id);
  if (epochs > 0 && run.total_steps > 0)
    message.set_steps_per_epoch(run.total_steps / epochs);
  else
    message.set_why_no_epochs(epochs > 0 ? "its length in steps is not known yet"
                                         : "no recipe.epochs in the configuration");
  if (batch >= 1 && batch <= 0xffff'ffff)
    message.set_images_per_step(static_cast<std::uint32_t>(batch));
  else
    message.set_why_no_images("no recipe.batch in the configuration");
  const int slots = storage::PartStore{db}.slots_of(id);
  if (trial.gpus == 0)
    message.set_why_no_gpu_time("it asked for no GPU");
  else if (run.packed_with > 0)
    message.set_why_no_gpu_time("it shared its GPU with other runs");
  else
    message.set_gpus(static_cast<std::uint32_t>(slots > 0 ? slots : trial.gpus));
  for (const auto& attempt : store.runs_of(run.trial)) {
    if (attempt.attempt > run.attempt) break;
    if (!attempt.resumed_from_step)
      message.clear_attempts();  // it began anew: without the points of those before
    auto& added = *message.add_attempts();
    added.set_started_ms(ms_of(attempt.started.value_or(attempt.leased)));
    if (attempt.ended) added.set_ended_ms(ms_of(*attempt.ended));
  }
  return message;
}

v1::CurvesResponse curves(storage::Database& db, const CurvesWanted& wanted) {
  const Transaction snapshot{db, Transaction::kRead};
  const storage::MetricStore store{db};
  auto all = runs_to_draw(db, wanted);
  const StepRange range = range_of(all, wanted);
  v1::CurvesResponse message;
  message.set_left_out(leave_out(all, wanted));
  const std::uint32_t width = width_of(all, wanted.width);
  const std::uint32_t bucket_steps = std::max(Bucketer::steps_for(range, width), wanted.bucket);
  for (const auto& run : all) {
    *message.add_runs() = curve_run(db, run.run);
    for (const auto& metric : run.metrics)
      add_curve(message, run.run, metric.said,
                store.curve(run.run, metric.name, range, bucket_steps,
                            whole_up_to(wanted, metric.said, range, width, bucket_steps)),
                wanted.times);
  }
  return message;
}

std::optional<std::uint32_t> step_asked(const Query& query, const char* parameter) {
  if (!query.has(parameter)) return std::nullopt;
  return query.number(parameter);
}

}  // namespace

extern const Read kCurvesRead{
    .path = "curves",
    .about = "Curves for charts: the points of a range of steps, all of them or in buckets",
    .parameters = {kRunsAsked,
                   kMetricsAsked,
                   {.name = "from", .about = "First step", .number = Range{}},
                   {.name = "to", .about = "Last step", .number = Range{}},
                   {.name = "width",
                    .about = "Buckets per curve at most",
                    .number = Range{.lowest = 1, .highest = kMostWidth, .otherwise = 1000}},
                   {.name = "bucket",
                    .about = "Steps of the buckets that the reader has already, a power of two: what a curve "
                             "of more than 10 × width points has gained comes in buckets no narrower",
                    .number = Range{.highest = kWidestBucket, .otherwise = 0}},
                   {.name = "times",
                    .about = "1: include the time of each point",
                    .number = Range{.highest = 1, .otherwise = 0}}},
    .message = v1::CurvesResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          CurvesWanted wanted{.from = step_asked(query, "from"),
                              .to = step_asked(query, "to"),
                              .width = query.number("width"),
                              .times = query.number("times") == 1};
          for (const std::uint32_t run : query.numbers("run")) wanted.runs.insert(run);
          if (wanted.runs.size() > std::size_t{kMostRunsMeasured})
            throw Error{Code::kInvalidArgument, fmt::format("{} runs: an answer has the curves of {} at most",
                                                            wanted.runs.size(), kMostRunsMeasured)};
          if (wanted.from && wanted.to && *wanted.to < *wanted.from)
            throw Error{Code::kInvalidArgument,
                        fmt::format("to: {} is before from: {}", *wanted.to, *wanted.from)};
          wanted.bucket = query.number("bucket");
          if (wanted.bucket > 0 && !std::has_single_bit(wanted.bucket))
            throw Error{Code::kInvalidArgument,
                        fmt::format("bucket: {} is not a power of two", wanted.bucket)};
          wanted.names = query.texts("name");
          return to_json(curves(stored.db, wanted));
        },
};

}  // namespace abl::views
