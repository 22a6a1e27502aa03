// SPDX-License-Identifier: Apache-2.0
#include "views/mean_curves.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "storage/buckets.h"
#include "storage/metric_store.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

constexpr std::size_t kCrossingsSaid = 20;

struct Run {
  std::vector<std::uint32_t> steps;
  std::vector<double> values;

  /// At a step between its first and its last; those that are asked for one after the other ascend.
  double at(std::uint32_t step, std::size_t& from) const {
    while (from + 1 < steps.size() && steps[from + 1] <= step) ++from;
    if (steps[from] == step || from + 1 == steps.size()) return values[from];
    const double part = static_cast<double>(step - steps[from]) / (steps[from + 1] - steps[from]);
    return std::lerp(values[from], values[from + 1], part);
  }
};

/// Nothing where a run has no finite point.
std::optional<std::vector<Run>> finite_runs(const std::vector<storage::Series>& all) {
  std::vector<Run> runs;
  for (const auto& series : all) {
    Run run;
    for (std::size_t i = 0; i < series.steps.size(); ++i) {
      if (!std::isfinite(series.values[i])) continue;
      run.steps.push_back(series.steps[i]);
      run.values.push_back(series.values[i]);
    }
    if (run.steps.empty()) return std::nullopt;
    runs.push_back(std::move(run));
  }
  if (runs.empty()) return std::nullopt;
  return runs;
}

std::vector<double> mean_at(const std::vector<std::uint32_t>& steps, const std::vector<Run>& runs) {
  std::vector<double> means(steps.size(), 0);
  for (const Run& run : runs) {
    std::size_t from = 0;
    for (std::size_t i = 0; i < steps.size(); ++i)
      means[i] += run.at(steps[i], from) / static_cast<double>(runs.size());
  }
  return means;
}

/// So many of them, the first and the last among them.
std::vector<std::size_t> spread(std::size_t size, std::size_t most) {
  std::vector<std::size_t> places;
  if (most == 0 || size == 0) return places;
  const std::size_t count = std::min(size, std::max<std::size_t>(most, 2));
  for (std::size_t i = 0; i < count; ++i)
    places.push_back(count == 1 ? size - 1 : i * (size - 1) / (count - 1));
  return places;
}

/// A metric of a run as about so many points: its first, the means over stretches of its steps, and its last.
/// No series where there is no point.
std::vector<storage::Series> means_of_stretches(const storage::MetricStore& store, storage::RunId run,
                                                const std::string& metric, std::uint64_t most) {
  std::vector<storage::Series> means;
  for (const auto& extent : store.extents(run, {metric})) {
    const auto steps = storage::Bucketer::steps_for(
        extent.steps, static_cast<std::uint32_t>(std::max<std::uint64_t>(1, most)));
    auto curve = store.curve(run, metric, extent.steps, steps, most);
    if (curve.bucket_steps > 0) {
      const auto ends = curve.series;
      storage::Series& series = curve.series;
      series.steps = {ends.steps.front()};
      series.values = {ends.values.front()};
      const auto add = [&](std::uint32_t step, double value) {
        if (step > series.steps.back()) series.steps.push_back(step), series.values.push_back(value);
      };
      for (const auto& bucket : curve.buckets)
        if (bucket.middle < ends.steps.back()) add(bucket.middle, bucket.mean);
      add(ends.steps.back(), ends.values.back());
    }
    means.push_back(std::move(curve.series));
  }
  return means;
}

std::size_t best_of(const std::vector<double>& values, protocol::Better better) {
  const auto best = better == protocol::Better::kLower ? std::ranges::min_element(values)
                                                       : std::ranges::max_element(values);
  return static_cast<std::size_t>(best - values.begin());
}

}  // namespace

std::optional<MeanCurves> mean_curves(const std::vector<storage::Series>& a,
                                      const std::vector<storage::Series>& b) {
  const auto ours = finite_runs(a), theirs = finite_runs(b);
  if (!ours || !theirs) return std::nullopt;
  std::uint32_t first = 0, last = ours->front().steps.back();
  MeanCurves curves;
  for (const auto* runs : {&*ours, &*theirs})
    for (const Run& run : *runs) {
      first = std::max(first, run.steps.front());
      last = std::min(last, run.steps.back());
      curves.steps.insert(curves.steps.end(), run.steps.begin(), run.steps.end());
    }
  std::ranges::sort(curves.steps);
  curves.steps.erase(std::unique(curves.steps.begin(), curves.steps.end()), curves.steps.end());
  std::erase_if(curves.steps, [&](std::uint32_t step) { return step < first || step > last; });
  if (curves.steps.empty()) return std::nullopt;
  if (curves.steps.size() > kMostStepsOfCurves) {
    std::vector<std::uint32_t> some;
    for (const std::size_t place : spread(curves.steps.size(), kMostStepsOfCurves))
      some.push_back(curves.steps[place]);
    curves.steps = std::move(some);
    curves.thinned = true;
  }
  curves.a = mean_at(curves.steps, *ours);
  curves.b = mean_at(curves.steps, *theirs);
  return curves;
}

v1::ComparedCurves curves_message(const MeanCurves& curves, protocol::Better better,
                                  std::uint32_t max_points) {
  v1::ComparedCurves message;
  message.set_first_step(curves.steps.front());
  message.set_last_step(curves.steps.back());
  message.set_a_last(curves.a.back());
  message.set_b_last(curves.b.back());
  if (better != protocol::Better::kNone) {
    const std::size_t a = best_of(curves.a, better), b = best_of(curves.b, better);
    message.set_a_best(curves.a[a]);
    message.set_a_best_step(curves.steps[a]);
    message.set_b_best(curves.b[b]);
    message.set_b_best_step(curves.steps[b]);
  }
  double sign = 0;  // of the last difference that was not 0
  std::vector<v1::Crossing> crossings;
  for (std::size_t i = 0; i < curves.steps.size(); ++i) {
    const double difference = curves.b[i] - curves.a[i];
    if (difference == 0 || std::isnan(difference)) continue;
    if (sign != 0 && std::signbit(sign) != std::signbit(difference)) {
      auto& crossing = crossings.emplace_back();
      crossing.set_step(curves.steps[i]);
      crossing.set_higher(difference > 0 ? "b" : "a");
    }
    sign = difference;
  }
  message.set_crossings_in_all(static_cast<std::uint32_t>(crossings.size()));
  for (std::size_t i = crossings.size() - std::min(crossings.size(), kCrossingsSaid); i < crossings.size();
       ++i)
    *message.add_crossings() = crossings[i];
  for (const std::size_t place : spread(curves.steps.size(), max_points)) {
    message.add_steps(curves.steps[place]);
    message.add_a(curves.a[place]);
    message.add_b(curves.b[place]);
  }
  return message;
}

std::uint64_t add_curves(storage::Database& db, v1::ComparedMetric& metric, std::uint32_t max_points,
                         std::uint64_t most_read) {
  const auto runs = static_cast<std::uint64_t>(metric.a().runs_size() + metric.b().runs_size());
  if (metric.a().runs().empty() || metric.b().runs().empty() || most_read < 2 * runs) return 0;
  const storage::MetricStore store{db};
  const std::vector<std::string> name{metric.metric()};
  std::uint64_t points = 0;
  bool is_curve = false;
  for (const auto* cell : {&metric.a(), &metric.b()})
    for (const auto& run : cell->runs()) {
      const std::uint64_t own = store.points(run.run(), name, 0);
      points += own;
      is_curve |= own > 1;
    }
  if (!is_curve) return 0;
  const bool is_thinned = points > most_read;
  const auto most = std::min<std::uint64_t>(most_read / runs, kMostStepsOfCurves);
  std::uint64_t done = 0;
  const auto read = [&](const v1::Cell& cell) {
    std::vector<storage::Series> all;
    for (const auto& run : cell.runs())
      for (auto& series : is_thinned ? means_of_stretches(store, run.run(), metric.metric(), most)
                                     : store.series(run.run(), name, 0)) {
        done += series.steps.size();
        all.push_back(std::move(series));
      }
    return all;
  };
  const auto both = mean_curves(read(metric.a()), read(metric.b()));
  done = std::min(done, most_read);
  if (!both || both->steps.size() < 2) return done;
  *metric.mutable_curves() = curves_message(
      *both, value_named<protocol::Better>(metric.better()).value_or(protocol::Better::kNone), max_points);
  metric.mutable_curves()->set_thinned(is_thinned || both->thinned);
  return done;
}

}  // namespace abl::views
