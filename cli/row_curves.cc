// SPDX-License-Identifier: Apache-2.0
#include "cli/row_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"
#include "views/comparison.h"

namespace abl::cli {

namespace v1 = ablate::v1;

namespace {

constexpr std::size_t kMostSteps = 1000;  // of a seed: a picture draws fewer

/// What one run said of a metric, thinned while it comes: the first point of each stretch of steps, and the
/// last of all.
class SeedPoints {
 public:
  /// By ascending step.
  void add(std::uint32_t step, double value) {
    if (std::isfinite(value))
      not_finite_since_.reset();
    else if (!not_finite_since_)
      not_finite_since_ = step;
    last_ = {step, value};
    if (!points_.empty() && step / stretch_ == points_.back().first / stretch_) return;
    points_.emplace_back(step, value);
    if (points_.size() > kMostSteps) thin(2 * stretch_);
  }
  std::uint64_t stretch() const { return stretch_; }
  /// To stretches of so many steps, a multiple of what they are.
  void thin(std::uint64_t stretch) {
    stretch_ = stretch;
    const auto same = [&](const auto& one, const auto& next) {
      return one.first / stretch_ == next.first / stretch_;
    };
    points_.erase(std::unique(points_.begin(), points_.end(), same), points_.end());
  }
  /// From where it is not finite to its end it diverged; before, a point may lack.
  void add_to(Curve& curve) const {
    if (not_finite_since_)
      curve.diverged_at = std::min(*not_finite_since_, curve.diverged_at.value_or(*not_finite_since_));
    const auto add = [&](const std::pair<std::uint32_t, double>& point) {
      const auto& [step, value] = point;
      if (not_finite_since_ && step >= *not_finite_since_) return;
      if (std::isfinite(value))
        curve.points[step].push_back(value);
      else
        curve.gaps.insert(step);
    };
    std::ranges::for_each(points_, add);
    if (!points_.empty() && points_.back().first != last_.first) add(last_);
  }

 private:
  std::vector<std::pair<std::uint32_t, double>> points_;
  std::pair<std::uint32_t, double> last_;
  std::uint64_t stretch_ = 1;  ///< steps; a power of two, so that those of two seeds begin at the same ones
  std::optional<std::uint32_t> not_finite_since_;
};

/// The seeds of one row.
class RowPoints {
 public:
  void add(std::uint32_t run, const v1::Series& series) {
    SeedPoints& seed = seeds_[series.name()][run];
    for (int i = 0; i < series.steps_size(); ++i) seed.add(series.steps(i), series.values(i));
  }
  /// Thins all seeds alike: a mean is of those that have a point at its step.
  void move_to(std::map<std::string, std::vector<Curve>>& metrics, std::size_t place) {
    for (auto& [metric, seeds] : seeds_) {
      std::uint64_t stretch = 1;
      for (const auto& [run, seed] : seeds) stretch = std::max(stretch, seed.stretch());
      for (auto& [run, seed] : seeds) {
        seed.thin(stretch);
        seed.add_to(metrics.at(metric)[place]);
      }
    }
    seeds_.clear();
  }

 private:
  std::map<std::string, std::map<std::uint32_t, SeedPoints>> seeds_;  ///< by metric, run
};

}  // namespace

RowCurves row_curves(Source& source, const v1::Table& table, const std::set<std::string>& metrics, int most) {
  RowCurves all;
  std::map<std::string, std::size_t> places;
  std::map<std::string, int> labels;
  for (const auto& row : table.rows()) ++labels[row.label()];
  std::vector<Curve> empty;
  for (const auto& row : table.rows()) {
    places[row.id()] = empty.size();
    const bool repeats = labels[row.label()] > 1 && row.label() != row.id();
    empty.push_back({.row = row.id(),
                     .label = row.label().empty() ? row.id()
                              : repeats           ? row.id() + ": " + row.label()
                                                  : row.label(),
                     .baseline = views::is_baseline(table, row),
                     .points = {}});
  }
  for (const auto& metric : metrics) all.metrics[metric] = empty;
  const auto sweep = source.sweep(table.sweep());
  if (sweep.trials_size() > most)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} has {} trials: too many curves for a picture; expected at most {}",
                            table.sweep(), sweep.trials_size(), most)};
  std::set<std::uint32_t> runs;
  for (const auto& trial : sweep.trials())
    if (trial.state() == v1::TRIAL_STATE_COMPLETED || trial.state() == v1::TRIAL_STATE_RUNNING)
      runs.insert(trial.run());
  RowPoints points;  // blocks come row by row
  std::optional<std::size_t> place;
  source.export_points(table.sweep(), [&](const v1::ExportBlock& block) {
    const auto row = places.find(block.row());
    if (row == places.end() || !runs.contains(block.run())) return;
    if (place && *place != row->second) points.move_to(all.metrics, *place);
    place = row->second;
    all.said.insert(block.series().name());
    if (metrics.contains(block.series().name())) points.add(block.run(), block.series());
  });
  if (place) points.move_to(all.metrics, *place);
  return all;
}

}  // namespace abl::cli
