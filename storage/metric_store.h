// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "storage/buckets.h"
#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Metric points, their running summaries, and logs. A value that is not finite is stored as NULL with its
/// kind beside it.
/// Thread: the connection's.
class MetricStore {
 public:
  explicit MetricStore(Database& db) : db_{db} {}

  /// Accepts batch `seq` of a run: true when it is the next one, false when it is stored already (a
  /// repetition after a break).
  /// Throws: Error{kFailedPrecondition} when a batch before it is missing.
  bool accept(RunId run, std::uint64_t seq);

  /// Appends points and brings the summaries (count, min, max, mean, last and their steps), the run's step,
  /// its rate and the digest of its curves up to date. A point (run, metric, step) that is there already is
  /// kept as it is, and counted where its value is another. Of a run that says too much (point_limit.h) not
  /// every point is kept: summaries are of all, and the others are counted as refused.
  void append(RunId run, const std::vector<Series>& series);
  /// The values that a probe found in the run's model after a step, in place of those that it found before.
  /// They say nothing of the run's course: its step, rate and digest stay.
  void replace_found(RunId run, std::string_view key, std::uint32_t step,
                     const std::map<std::string, double>& values, Time now);
  void append_log(RunId run, std::string_view text);
  /// Gives `to` the points of `from` up to a step, so that a resumed run holds its whole history. Where not
  /// all were kept and `from` went further, its mean is of those that are kept.
  void copy(RunId from, RunId to, std::uint32_t up_to_step);

  /// Lines of the run's output that were refused as metrics; `example` is kept when it is the first.
  void add_refused(RunId run, std::uint32_t lines, const std::string& example);
  /// Points that were not kept, since their step had another value.
  void add_repeated(RunId run, std::uint32_t points);

  static constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
  /// By name; at most so many, first those that columns take.
  std::vector<MetricSummary> summaries(RunId run, std::uint32_t most = kAll) const;
  std::set<std::string> names(RunId run) const;  ///< of its metrics
  /// How many points `series` would answer.
  std::uint64_t points(RunId run, const std::vector<std::string>& names, std::uint32_t max_points) const;
  /// The last value of each metric: what lists of trials show. At most so many, first those that columns of
  /// the sweep take; `left_out`: how many there are beside.
  std::map<std::string, double> last_values(RunId run, SweepId sweep, std::uint32_t most,
                                            std::uint32_t& left_out) const;
  std::uint32_t count(RunId run) const;  ///< of its metrics
  /// By ascending step. `max_points` > 0 thins each series that has more, keeping the first, the last and the
  /// extremes of each stretch of steps.
  std::vector<Series> series(RunId run, const std::vector<std::string>& names,
                             std::uint32_t max_points) const;
  /// The same for a chart: a metric's points in a range of steps, all of them where they are at most
  /// `exact_up_to`, otherwise in buckets of `bucket_steps`, a power of two. What it reads and holds grows
  /// with the buckets and not with the points, where these have long been stored (point_blocks.h).
  BucketedSeries curve(RunId run, const std::string& name, StepRange range, std::uint32_t bucket_steps,
                       std::size_t exact_up_to) const;
  /// The first and last step of metrics of a run, and how many points it reported of each: a lookup per
  /// metric, however many points there are. `names` empty: all metrics.
  struct Extent {
    std::string name;
    std::uint64_t said = 0;
    StepRange steps;
  };
  std::vector<Extent> extents(RunId run, const std::vector<std::string>& names) const;
  /// Points of one metric after a step, by ascending step, at most `limit`.
  Series page(RunId run, const std::string& name, std::int64_t after_step, std::size_t limit) const;
  /// Log bytes from `offset`, at most `limit`.
  std::string log(RunId run, std::uint64_t offset, std::size_t limit) const;
  std::string log_tail(RunId run, int lines, std::size_t most = 64 << 10) const;

 private:
  struct Counted {
    std::string name;
    std::int64_t id = 0;
    std::uint32_t count = 0, last_step = 0;
  };
  std::vector<Counted> counted(RunId run, const std::vector<std::string>& names) const;
  std::uint32_t first_step(RunId run, std::int64_t metric) const;  ///< that has a point
  std::int64_t metric_id(const std::string& name);
  Database& db_;
};

}  // namespace abl::storage
