// SPDX-License-Identifier: Apache-2.0
#include "storage/metric_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "protocol/metrics.h"
#include "protocol/number.h"
#include "protocol/probe_results.h"
#include "storage/curves.h"
#include "storage/point_blocks.h"
#include "storage/point_limit.h"
#include "storage/stored_number.h"
#include "storage/stored_word.h"

namespace abl::storage {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional{value} : std::nullopt;
}

/// The running summary of one metric of one run. Points may come in any order; the last is the one of the
/// highest step, the extremes are the earliest of equals.
struct Running {
  std::int64_t count = 0, finite_count = 0, min_step = 0, max_step = 0, last_step = 0;
  double sum = 0, min = kNaN, max = kNaN, last = kNaN;

  void add(std::int64_t step, double value) {
    if (count++ == 0 || step >= last_step) last = value, last_step = step;
    if (!std::isfinite(value)) return;
    const bool first = finite_count++ == 0;
    sum += value;
    if (first || value < min || (value == min && step < min_step)) min = value, min_step = step;
    if (first || value > max || (value == max && step < max_step)) max = value, max_step = step;
  }

  /// For what is of the points up to a step that are kept: takes from `all`, of all points, what is known of
  /// those up to it that are not.
  void take_known(const Running& all, std::int64_t up_to_step) {
    if (all.count == 0) return;
    if (all.last_step <= up_to_step) *this = all;
    if (finite_count == 0) return;
    if (all.min_step <= up_to_step && all.min < min) min = all.min, min_step = all.min_step;
    if (all.max_step <= up_to_step && all.max > max) max = all.max, max_step = all.max_step;
  }
};

Running load(Database& db, RunId run, std::int64_t metric) {
  return db
      .prepared(R"sql(SELECT count, finite, sum, min, max, last, last_kind, last_step, min_step, max_step
                      FROM metric_summary WHERE run_id = :run AND metric_id = :metric)sql")
      .bind(":run", run)
      .bind(":metric", metric)
      .one([](const Statement& row) {
        return Running{.count = row.integer(0),
                       .finite_count = row.integer(1),
                       .min_step = row.integer(8),
                       .max_step = row.integer(9),
                       .last_step = row.integer(7),
                       .sum = row.real(2),
                       .min = stored_number(row, 3, -1),
                       .max = stored_number(row, 4, -1),
                       .last = stored_number(row, 5, 6)};
      })
      .value_or(Running{});
}

void store(Database& db, RunId run, std::int64_t metric, const Running& summary) {
  db.prepared(R"sql(INSERT OR REPLACE INTO metric_summary
                    (run_id, metric_id, count, finite, sum, min, max, last, last_kind, last_step, min_step, max_step)
                    VALUES (:run, :metric, :count, :finite, :sum, :min, :max, :last, :last_kind, :last_step, :min_step, :max_step))sql")
      .bind(":run", run)
      .bind(":metric", metric)
      .bind(":count", summary.count)
      .bind(":finite", summary.finite_count)
      .bind(":sum", summary.sum)
      .bind(":min", finite(summary.min))
      .bind(":max", finite(summary.max))
      .bind(":last", finite(summary.last))
      .bind(":last_kind", protocol::non_finite_name(summary.last))
      .bind(":last_step", summary.last_step)
      .bind(":min_step", summary.min_step)
      .bind(":max_step", summary.max_step)
      .run();
}

std::optional<double> stored_value(Database& db, RunId run, std::int64_t metric, std::int64_t step) {
  return db
      .prepared("SELECT value, kind FROM point WHERE run_id = :run AND metric_id = :metric AND step = :step")
      .bind(":run", run)
      .bind(":metric", metric)
      .bind(":step", step)
      .one([](const Statement& row) { return stored_number(row, 0, 1); });
}

/// Returns: false when its step has a point already, which stays.
bool insert_point(Database& db, RunId run, std::int64_t metric, std::int64_t step, double value,
                  std::int64_t time_ms) {
  db.prepared(R"sql(INSERT INTO point (run_id, metric_id, step, value, kind, time_ms)
                    VALUES (:run, :metric, :step, :value, :kind, :time)
                    ON CONFLICT (run_id, metric_id, step) DO NOTHING)sql")
      .bind(":run", run)
      .bind(":metric", metric)
      .bind(":step", step)
      .bind(":value", finite(value))
      .bind(":kind", protocol::non_finite_name(value))
      .bind(":time", time_ms)
      .run();
  return db.changes() > 0;
}

/// So many points in one statement: to begin and to end one costs as much as to store a point.
constexpr std::size_t kTogether = 32;

const char* insert_together() {
  static const std::string sql = [] {
    std::string text = "INSERT INTO point (run_id, metric_id, step, value, kind, time_ms) VALUES ";
    for (std::size_t i = 0; i < kTogether; ++i)
      text += fmt::format("{}(?1, ?2, ?{}, ?{}, ?{}, ?{})", i > 0 ? ", " : "", 4 * i + 3, 4 * i + 4,
                          4 * i + 5, 4 * i + 6);
    return text + " ON CONFLICT (run_id, metric_id, step) DO NOTHING";
  }();
  return sql.c_str();
}

/// Stores the first points of a series, as far as they are many and all of them new: whole, and each further
/// on than whatever the metric has said. Returns: how many.
std::size_t insert_new(Database& db, RunId run, std::int64_t metric, const Series& series,
                       const Running& summary, std::uint64_t said) {
  std::size_t done = 0;
  std::int64_t last = summary.count > 0 ? summary.last_step : -1;
  while (done + kTogether <= series.steps.size() && said + done + kTogether <= kWholeRun) {
    Statement& insert = db.prepared(insert_together());
    insert.bind_at(1, run).bind_at(2, metric);
    for (std::size_t i = 0; i < kTogether; ++i) {
      const std::int64_t step = series.steps[done + i];
      if (step <= last) return done;
      last = step;
      const double value = series.values[done + i];
      const int first = static_cast<int>(4 * i + 3);
      insert.bind_at(first, step).bind_at(first + 3, series.times_ms[done + i]);
      if (std::isfinite(value))
        insert.bind_at(first + 1, value);
      else
        insert.bind_at(first + 2, protocol::non_finite_name(value).value());
    }
    insert.run();
    if (db.changes() != static_cast<int>(kTogether))
      throw Error{Code::kDataLoss,
                  fmt::format("run {} has points of metric {} beyond step {}, the highest of its summary",
                              run, metric, summary.last_step)};
    done += kTogether;
  }
  return done;
}

/// All points that a run has said, kept or not, from its summaries: as many rows as it has metrics.
std::uint64_t points_said(Database& db, RunId run) {
  return static_cast<std::uint64_t>(
      db.prepared("SELECT COALESCE(SUM(count), 0) FROM metric_summary WHERE run_id = :run")
          .bind(":run", run)
          .one([](const Statement& row) { return row.integer(0); })
          .value());
}

std::int64_t points_kept(Database& db, RunId run, std::int64_t metric) {
  return db.prepared("SELECT COUNT(*) FROM point WHERE run_id = :run AND metric_id = :metric")
      .bind(":run", run)
      .bind(":metric", metric)
      .one([](const Statement& row) { return row.integer(0); })
      .value();
}

/// Points that are not kept since there are too many of the run.
struct Thinned {
  std::uint32_t points = 0;
  std::string example;

  void add(const std::string& metric, std::uint32_t step) {
    if (points++ == 0)
      example = fmt::format(
          "'{}' at step {} (a run keeps some of its points beyond {} million; last, best and mean count all)",
          metric, step, kWholeRun / 1'000'000);
  }
};

/// A count as messages hold it.
std::uint32_t in_32_bits(std::int64_t count) {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(count, std::numeric_limits<std::uint32_t>::max()));
}

/// The same point once more, as after a resumption, and not another value for its step.
bool is_same_value(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

std::uint64_t curves_of(Database& db, RunId run) {
  return static_cast<std::uint64_t>(db.prepared("SELECT curves FROM run WHERE id = :run")
                                        .bind(":run", run)
                                        .one([](const Statement& row) { return row.integer(0); })
                                        .value_or(0));
}

}  // namespace

bool MetricStore::accept(RunId run, std::uint64_t seq) {
  const auto last = db_.prepared("SELECT last_seq FROM run WHERE id = :run")
                        .bind(":run", run)
                        .one([](const Statement& row) { return static_cast<std::uint64_t>(row.integer(0)); });
  if (!last) throw Error{Code::kNotFound, "run " + std::to_string(run) + " is not in the store"};
  if (seq <= *last) return false;
  if (seq != *last + 1)
    throw Error{Code::kFailedPrecondition, "batch " + std::to_string(seq) + " of run " + std::to_string(run) +
                                               " came before batch " + std::to_string(*last + 1) +
                                               "; send the missing ones first"};
  db_.prepared("UPDATE run SET last_seq = :seq WHERE id = :run")
      .bind(":seq", static_cast<std::int64_t>(seq))
      .bind(":run", run)
      .run();
  return true;
}

std::int64_t MetricStore::metric_id(const std::string& name) {
  db_.prepared("INSERT INTO metric (name) VALUES (:name) ON CONFLICT (name) DO NOTHING")
      .bind(":name", name)
      .run();
  return db_.prepared("SELECT id FROM metric WHERE name = :name")
      .bind(":name", name)
      .one([](const Statement& row) { return row.integer(0); })
      .value();
}

void MetricStore::append(RunId run, const std::vector<Series>& series) {
  if (series.empty()) return;
  Transaction transaction{db_, Transaction::kSavepoint};
  std::int64_t first_step = -1, first_ms = 0, step = -1, step_ms = 0;
  std::uint64_t said = points_said(db_, run);
  std::uint32_t repeated = 0;
  Thinned thinned;
  CurveDigest curves{curves_of(db_, run)};
  PointBlocks blocks{db_};
  for (const Series& metric : series) {
    const std::int64_t id = metric_id(metric.name);
    Running summary = load(db_, run, id);
    const std::int64_t before = summary.count;
    const auto digest = CurveDigest::of_metric(metric.name);
    const std::size_t inserted = insert_new(db_, run, id, metric, summary, said);
    for (std::size_t i = 0; i < metric.steps.size(); ++i) {
      const double value = metric.values.at(i);
      const auto count = static_cast<std::uint64_t>(summary.count);
      const std::uint64_t stride = point_stride(said, count);
      // where not all are kept, a step that is not above the others may have been said before
      const bool is_doubtful = stride > 1 && metric.steps[i] <= summary.last_step;
      const bool is_kept = !is_doubtful && count % stride == 0;
      const bool is_there = i < inserted ? false
                            : is_kept
                                ? !insert_point(db_, run, id, metric.steps[i], value, metric.times_ms.at(i))
                                : is_doubtful;
      if (is_there) {  // counted already
        const auto stored = stored_value(db_, run, id, metric.steps[i]);
        if (!stored)
          thinned.add(metric.name, metric.steps[i]);
        else
          repeated += !is_same_value(*stored, value);
        continue;
      }
      if (!is_kept) thinned.add(metric.name, metric.steps[i]);
      if (metric.steps[i] < summary.last_step) blocks.forget(run, id, metric.steps[i]);
      ++said;
      summary.add(metric.steps[i], value);
      if (digest) curves.add(*digest, metric.steps[i], value);
      if (first_step < 0 || metric.steps[i] < first_step)
        first_step = metric.steps[i], first_ms = metric.times_ms[i];
      if (metric.steps[i] > step) step = metric.steps[i], step_ms = metric.times_ms[i];
    }
    if (summary.count > 0) store(db_, run, id, summary);
    if (summary.count / PointBlocks::kPoints > before / PointBlocks::kPoints) blocks.extend(run, id);
  }
  add_repeated(run, repeated);
  add_refused(run, thinned.points, thinned.example);
  if (step >= 0)
    db_.prepared(R"sql(
        UPDATE run SET step = MAX(step, :step), curves = :curves, rate_step = COALESCE(rate_step, :first_step), rate_ms = COALESCE(rate_ms, :first_ms),
               steps_per_second = CASE WHEN :step > COALESCE(rate_step, :first_step) AND :ms > COALESCE(rate_ms, :first_ms)
                   THEN (:step - COALESCE(rate_step, :first_step)) * 1000.0 / (:ms - COALESCE(rate_ms, :first_ms))
                   ELSE steps_per_second END
        WHERE id = :run)sql")
        .bind(":step", step)
        .bind(":curves", static_cast<std::int64_t>(curves.value()))
        .bind(":ms", step_ms)
        .bind(":first_step", first_step)
        .bind(":first_ms", first_ms)
        .bind(":run", run)
        .run();
  transaction.commit();
}

namespace {

/// The least text that is greater than all with this prefix.
std::string behind(std::string prefix) {
  ++prefix.back();
  return prefix;
}

}  // namespace

void MetricStore::replace_found(RunId run, std::string_view key, std::uint32_t step,
                                const std::map<std::string, double>& values, Time now) {
  const std::string first = protocol::probe_metric(key, "");
  Transaction transaction{db_, Transaction::kSavepoint};
  for (const char* sql : {R"sql(DELETE FROM point WHERE run_id = :run AND metric_id IN (
                                SELECT id FROM metric WHERE name >= :first AND name < :behind))sql",
                          R"sql(DELETE FROM metric_summary WHERE run_id = :run AND metric_id IN (
                                SELECT id FROM metric WHERE name >= :first AND name < :behind))sql"})
    db_.prepared(sql).bind(":run", run).bind(":first", first).bind(":behind", behind(first)).run();
  for (const auto& [name, value] : values) {
    const std::int64_t id = metric_id(protocol::probe_metric(key, name));
    insert_point(db_, run, id, step, value, now.time_since_epoch().count());
    Running summary;
    summary.add(step, value);
    store(db_, run, id, summary);
  }
  transaction.commit();
}

void MetricStore::copy(RunId from, RunId to, std::uint32_t up_to_step) {
  Transaction transaction{db_, Transaction::kSavepoint};
  db_.prepared(R"sql(INSERT INTO point (run_id, metric_id, step, value, kind, time_ms)
                     SELECT :to, metric_id, step, value, kind, time_ms FROM point WHERE run_id = :from AND step <= :step
                       AND metric_id NOT IN (SELECT id FROM metric WHERE name >= :probed AND name < :behind)
                     ON CONFLICT (run_id, metric_id, step) DO NOTHING)sql")
      .bind(":to", to)
      .bind(":from", from)
      .bind(":step", up_to_step)
      .bind(":probed", std::string{protocol::kProbeMetrics})
      .bind(":behind", behind(std::string{protocol::kProbeMetrics}))
      .run();
  struct Metric {
    std::int64_t id;
    std::string name;
  };
  const auto metrics =
      db_.prepared(
             "SELECT id, name FROM metric WHERE id IN (SELECT metric_id FROM point WHERE run_id = :run)")
          .bind(":run", to)
          .all([](const Statement& row) {
            return Metric{row.integer(0), row.text(1)};
          });
  CurveDigest curves;
  for (const auto& metric : metrics) {
    Running summary;
    auto& points = db_.prepared(
        "SELECT step, value, kind FROM point WHERE run_id = :run AND metric_id = :metric ORDER BY step");
    points.bind(":run", to).bind(":metric", metric.id);
    while (points.step()) {
      const double value = stored_number(points, 1, 2);
      summary.add(points.integer(0), value);
      curves.add(metric.name, points.integer(0), value);
    }
    summary.take_known(load(db_, from, metric.id), up_to_step);
    store(db_, to, metric.id, summary);
    PointBlocks{db_}.extend(to, metric.id, std::numeric_limits<int>::max());
  }
  db_.prepared("UPDATE run SET curves = :curves WHERE id = :run")
      .bind(":curves", static_cast<std::int64_t>(curves.value()))
      .bind(":run", to)
      .run();
  transaction.commit();
}

void MetricStore::append_log(RunId run, std::string_view text) {
  if (text.empty()) return;
  Transaction transaction{db_, Transaction::kSavepoint};
  db_.prepared(
         "INSERT INTO log_chunk (run_id, offset, bytes) SELECT id, log_bytes, :bytes FROM run WHERE id = "
         ":run")
      .bind_blob(":bytes", text)
      .bind(":run", run)
      .run();
  db_.prepared("UPDATE run SET log_bytes = log_bytes + :size WHERE id = :run")
      .bind(":size", static_cast<std::int64_t>(text.size()))
      .bind(":run", run)
      .run();
  transaction.commit();
}

std::set<std::string> MetricStore::names(RunId run) const {
  std::set<std::string> names;
  auto& rows =
      db_.prepared("SELECT m.name FROM metric_summary JOIN metric m ON m.id = metric_id WHERE run_id = :run");
  rows.bind(":run", run);
  while (rows.step()) names.insert(rows.text(0));
  return names;
}

void MetricStore::add_repeated(RunId run, std::uint32_t points) {
  if (points == 0) return;
  db_.prepared("UPDATE run SET repeated_points = repeated_points + :points WHERE id = :run")
      .bind(":points", points)
      .bind(":run", run)
      .run();
}

void MetricStore::add_refused(RunId run, std::uint32_t lines, const std::string& example) {
  if (lines == 0) return;
  db_.prepared(R"sql(UPDATE run SET refused_lines = MIN(refused_lines + :lines, 4294967295),
                                    refused_example = CASE refused_example WHEN '' THEN :example ELSE refused_example END
                     WHERE id = :run)sql")
      .bind(":lines", lines)
      .bind(":example", example)
      .bind(":run", run)
      .run();
}

std::vector<MetricSummary> MetricStore::summaries(RunId run, std::uint32_t most) const {
  // which metrics first, then what each of them is: a run may have thousands
  return db_
      .prepared(R"sql(
      SELECT m.name, count, min, max, sum / finite, last, last_kind, last_step, min_step, max_step, finite,
             (SELECT CASE WHEN MIN(c.better) = MAX(c.better) THEN MIN(c.better) END
              FROM run JOIN sweep_trial st ON st.trial_id = run.trial_id
              JOIN sweep_column c ON c.sweep_id = st.sweep_id AND c.kind = 'metric' AND c.source = m.name AND c.better <> 'none'
              WHERE run.id = :run)
      FROM (SELECT metric_id, name FROM metric_summary JOIN metric ON id = metric_id WHERE run_id = :run
            ORDER BY name NOT IN (SELECT c.source FROM run JOIN sweep_trial st ON st.trial_id = run.trial_id
                                  JOIN sweep_column c ON c.sweep_id = st.sweep_id AND c.kind = 'metric' WHERE run.id = :run),
                     name LIMIT :most) m
      JOIN metric_summary ms ON ms.run_id = :run AND ms.metric_id = m.metric_id ORDER BY m.name)sql")
      .bind(":most", most)
      .bind(":run", run)
      .all([](const Statement& row) {
        MetricSummary summary{.name = row.text(0),
                              .count = in_32_bits(row.integer(1)),
                              .finite = in_32_bits(row.integer(10)),
                              .min = stored_number(row, 2, -1),
                              .max = stored_number(row, 3, -1),
                              .mean = stored_number(row, 4, -1),
                              .last = stored_number(row, 5, 6),
                              .min_step = static_cast<std::uint32_t>(row.integer(8)),
                              .max_step = static_cast<std::uint32_t>(row.integer(9)),
                              .last_step = static_cast<std::uint32_t>(row.integer(7))};
        using protocol::Better;
        const Better agreed = row.is_null(11) ? protocol::better_by_name(summary.name)
                                              : from_word<Better>("'better' of a column", row.text(11));
        const bool low = agreed == Better::kLower;
        summary.best = low ? summary.min : summary.max;
        summary.best_step = low ? summary.min_step : summary.max_step;
        return summary;
      });
}

std::map<std::string, double> MetricStore::last_values(RunId run, SweepId sweep, std::uint32_t most,
                                                       std::uint32_t& left_out) const {
  std::map<std::string, double> last;
  left_out = 0;
  // nearly every run has so few that nobody need choose
  auto& all = db_.prepared(R"sql(
      SELECT m.name, last, last_kind FROM metric_summary JOIN metric m ON m.id = metric_id WHERE run_id = :run LIMIT :enough)sql");
  all.bind(":run", run).bind(":enough", std::int64_t{most} + 1);
  while (all.step()) last[all.text(0)] = stored_number(all, 1, 2);
  if (last.size() <= most) return last;
  last.clear();
  auto& metrics = db_.prepared(R"sql(
      SELECT m.name, last, last_kind FROM metric_summary JOIN metric m ON m.id = metric_id WHERE run_id = :run
      ORDER BY m.name NOT IN (SELECT source FROM sweep_column WHERE sweep_id = :sweep AND kind = 'metric'), m.name
      LIMIT :most)sql");
  metrics.bind(":run", run).bind(":sweep", sweep).bind(":most", most);
  while (metrics.step()) last[metrics.text(0)] = stored_number(metrics, 1, 2);
  left_out = count(run) - most;
  return last;
}

std::uint32_t MetricStore::count(RunId run) const {
  return static_cast<std::uint32_t>(db_.prepared("SELECT COUNT(*) FROM metric_summary WHERE run_id = :run")
                                        .bind(":run", run)
                                        .one([](const Statement& row) { return row.integer(0); })
                                        .value());
}

/// The metrics of a run, and how many points are kept of each: to be counted only where they may be fewer
/// than it said.
std::vector<MetricStore::Counted> MetricStore::counted(RunId run,
                                                       const std::vector<std::string>& names) const {
  auto& metrics = db_.prepared(R"sql(
      SELECT m.name, count, m.id, last_step FROM metric_summary JOIN metric m ON m.id = metric_id WHERE run_id = :run
      ORDER BY m.name)sql");
  metrics.bind(":run", run);
  const bool is_whole = points_said(db_, run) <= kWholeRun;
  std::vector<Counted> counted;
  while (metrics.step()) {
    std::string name = metrics.text(0);
    if (!names.empty() && std::ranges::find(names, name) == names.end()) continue;
    std::int64_t count = metrics.integer(1);
    if (!is_whole && static_cast<std::uint64_t>(count) > kWholeMetric)
      count = points_kept(db_, run, metrics.integer(2));
    counted.push_back({.name = std::move(name),
                       .id = metrics.integer(2),
                       .count = in_32_bits(count),
                       .last_step = static_cast<std::uint32_t>(metrics.integer(3))});
  }
  return counted;
}

std::vector<Series> MetricStore::series(RunId run, const std::vector<std::string>& names,
                                        std::uint32_t max_points) const {
  const PointBlocks blocks{db_};
  std::vector<Series> result;
  for (const Counted& metric : counted(run, names)) {
    Series series;
    if (max_points == 0 || metric.count <= max_points) {
      series = page(run, metric.name, -1, metric.count);
    } else {  // a long series need not fit into memory
      const StepRange range{first_step(run, metric.id), metric.last_step};
      Thinner thinner{range, max_points};
      blocks.read(run, metric.id, range, thinner.bucket_steps(),
                  {.point = [&](const CurvePoint& point) { thinner.add(point); },
                   .stretch = [&](const Stretch& stretch) { thinner.add(stretch); }});
      series = thinner.take();
    }
    series.name = metric.name;
    result.push_back(std::move(series));
  }
  return result;
}

std::uint32_t MetricStore::first_step(RunId run, std::int64_t metric) const {
  return db_
      .prepared("SELECT step FROM point WHERE run_id = :run AND metric_id = :metric ORDER BY step LIMIT 1")
      .bind(":run", run)
      .bind(":metric", metric)
      .one([](const Statement& row) { return static_cast<std::uint32_t>(row.integer(0)); })
      .value_or(0);
}

std::uint64_t MetricStore::points(RunId run, const std::vector<std::string>& names,
                                  std::uint32_t max_points) const {
  std::uint64_t points = 0;
  for (const Counted& metric : counted(run, names))
    points += max_points == 0 ? metric.count : std::min(metric.count, max_points);
  return points;
}

BucketedSeries MetricStore::curve(RunId run, const std::string& name, StepRange range,
                                  std::uint32_t bucket_steps, std::size_t exact_up_to) const {
  const std::int64_t metric = db_.prepared("SELECT id FROM metric WHERE name = :name")
                                  .bind(":name", name)
                                  .one([](const Statement& row) { return row.integer(0); })
                                  .value_or(0);
  const PointBlocks blocks{db_};
  const bool is_long = blocks.points(run, metric, range) > exact_up_to;
  Bucketer buckets{bucket_steps, exact_up_to};
  blocks.read(run, metric, range, is_long ? bucket_steps : 1,
              {.point = [&](const CurvePoint& point) { buckets.add(point); },
               .stretch = [&](const Stretch& stretch) { buckets.add(stretch); }});
  BucketedSeries curve = buckets.take();
  curve.series.name = name;
  return curve;
}

std::vector<MetricStore::Extent> MetricStore::extents(RunId run,
                                                      const std::vector<std::string>& names) const {
  auto& metrics = db_.prepared(R"sql(
      SELECT m.name, count, last_step,
             (SELECT step FROM point p WHERE p.run_id = :run AND p.metric_id = m.id ORDER BY step LIMIT 1)
      FROM metric_summary JOIN metric m ON m.id = metric_id WHERE run_id = :run ORDER BY m.name)sql");
  metrics.bind(":run", run);
  const std::set<std::string> wanted{names.begin(), names.end()};
  std::vector<Extent> extents;
  while (metrics.step()) {
    std::string name = metrics.text(0);
    if (!wanted.empty() && !wanted.contains(name)) continue;
    const auto last = static_cast<std::uint32_t>(metrics.integer(2));
    const auto first = metrics.is_null(3) ? last : static_cast<std::uint32_t>(metrics.integer(3));
    extents.push_back({std::move(name), static_cast<std::uint64_t>(metrics.integer(1)), {first, last}});
  }
  return extents;
}

Series MetricStore::page(RunId run, const std::string& name, std::int64_t after_step,
                         std::size_t limit) const {
  Series page{.name = name};
  auto& points = db_.prepared(R"sql(SELECT step, value, kind, time_ms FROM point
                                    WHERE run_id = :run AND metric_id = (SELECT id FROM metric WHERE name = :name) AND step > :after
                                    ORDER BY step LIMIT :limit)sql");
  points.bind(":run", run)
      .bind(":name", name)
      .bind(":after", after_step)
      .bind(":limit", static_cast<std::int64_t>(limit));
  while (points.step()) {
    page.steps.push_back(static_cast<std::uint32_t>(points.integer(0)));
    page.values.push_back(stored_number(points, 1, 2));
    page.times_ms.push_back(points.integer(3));
  }
  return page;
}

std::string MetricStore::log(RunId run, std::uint64_t offset, std::size_t limit) const {
  std::string text;
  auto& chunks = db_.prepared(R"sql(
      SELECT offset, bytes FROM log_chunk
      WHERE run_id = :run AND offset >= COALESCE((SELECT MAX(offset) FROM log_chunk WHERE run_id = :run AND offset <= :offset), 0)
      ORDER BY offset)sql");
  chunks.bind(":run", run).bind(":offset", static_cast<std::int64_t>(offset));
  while (text.size() < limit && chunks.step()) {
    const std::string bytes = chunks.text(1);
    const auto start = static_cast<std::uint64_t>(chunks.integer(0));
    const std::size_t skip = offset > start ? std::min<std::uint64_t>(offset - start, bytes.size()) : 0;
    text.append(bytes, skip, limit - text.size());
  }
  chunks.reset();
  return text;
}

std::string MetricStore::log_tail(RunId run, int lines, std::size_t most) const {
  const auto size = static_cast<std::uint64_t>(db_.prepared("SELECT log_bytes FROM run WHERE id = :run")
                                                   .bind(":run", run)
                                                   .one([](const Statement& row) { return row.integer(0); })
                                                   .value_or(0));
  const std::string text = log(run, size > most ? size - most : 0, most);
  int seen = 0;
  std::size_t start = text.size();
  if (start > 0 && text[start - 1] == '\n') --start;  // the newline that ends the last line opens none
  while (start > 0 && !(text[start - 1] == '\n' && ++seen == lines)) --start;
  return text.substr(start);
}

}  // namespace abl::storage
