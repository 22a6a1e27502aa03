// SPDX-License-Identifier: Apache-2.0
#include "planning/trial_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "statistics/distributions.h"

namespace abl::planning {
namespace {

using storage::Calibration;

/// Of ten values of a normal distribution nine lie so many standard deviations about its mean.
constexpr double kNineOfTen = 1.645;
/// What a calibration does not see: other load, memory that fills, slots beside it. Relative, one deviation.
constexpr double kCalibrationDeviation = 0.13;
/// Of the logarithm of a rate that follows from others', at least, and from a single one.
constexpr double kLikeDeviation = 0.12, kSingleDeviation = 0.35;
/// A stated rate may be so many times too high or too low.
constexpr double kStatedFactor = 3;
/// Several GPUs wait for each other's gradients: at best not at all, at worst for two fifths of the time.
constexpr double kSeveralGpus = 1.15, kSeveralGpusAtWorst = 1.67;
/// Where nobody has measured it.
constexpr double kStartOnCpu = 1.5, kStartOnGpu = 8;
constexpr double kCpuMacsPerThread = 15e9;

/// Dense peaks as their makers print them, TFLOP/s, in 16 bits and in 32 (float32 without TF32).
struct Gpu {
  std::string_view name;
  double half, single;
};
constexpr std::array kGpus{
    Gpu{"H200", 989, 67},   Gpu{"H100 PCIe", 756, 51}, Gpu{"H100", 989, 67},       Gpu{"A100", 312, 19.5},
    Gpu{"V100", 125, 15.7}, Gpu{"L40S", 362, 91.6},    Gpu{"L4", 121, 30.3},       Gpu{"T4", 65, 8.1},
    Gpu{"A40", 150, 37.4},  Gpu{"A10", 125, 31.2},     Gpu{"RTX 4090", 165, 82.6}, Gpu{"RTX 3090", 71, 35.6},
};
constexpr std::string_view kReference = "A100";
/// Of the peak that small vision models reach, as is assumed.
constexpr double kShareOfHalf = 0.25, kShareOfSingle = 0.5;

TrialTime around(double seconds, double deviation, TrialTime::From from) {
  const double factor = std::exp(kNineOfTen * deviation);
  return {.seconds = seconds, .low = seconds / factor, .high = seconds * factor, .from = from, .why = {}};
}

/// How unlike two rates are: squared, one for what makes a difference of about a quarter.
double distance(const Rate& one, const Rate& other) {
  const auto square = [](double value) { return value * value; };
  return square(std::log(one.image_macs / other.image_macs)) +
         square(std::log(one.images / other.images) / 1.5) + (one.family == other.family ? 0 : 2) +
         (one.precision == other.precision ? 0 : 6);
}

/// The logarithm of the rate of what is like `wanted`, from the others but one.
std::optional<double> weighed(const Rate& wanted, const std::vector<Rate>& rates, const Rate* without) {
  double sum = 0, weights = 0;
  for (const Rate& rate : rates) {
    if (&rate == without) continue;
    const double weight = std::exp(-distance(wanted, rate) / 2) + 1e-9;
    sum += weight * std::log(rate.macs_per_second), weights += weight;
  }
  return weights > 0 ? std::optional{sum / weights} : std::nullopt;
}

}  // namespace

TrialTime time_from_runs(const storage::Measured& measured) {
  constexpr double kOneRun = 0.15, kLeast = 0.03;  // relative
  const double n = std::min<double>(measured.runs, 10);
  double half = kNineOfTen * kOneRun;
  if (measured.deviation && n > 1)
    half = statistics::t_quantile(0.95, n - 1) * std::sqrt(1 + 1 / n) *
           std::max(*measured.deviation / std::max(1e-9, measured.seconds), kLeast);
  return {.seconds = measured.seconds,
          .low = measured.seconds / (1 + half),
          .high = measured.seconds * (1 + half),
          .from = TrialTime::From::kRuns,
          .why = measured.runs == 1 ? "1 run" : fmt::format("{} runs", measured.runs)};
}

StatedRate stated_rate(const Place& place, config::Precision precision, std::string* named) {
  if (!place.is_gpu()) {
    if (named) *named = fmt::format("{} CPU thread{}", place.threads, place.threads == 1 ? "" : "s");
    return {.macs_per_second = kCpuMacsPerThread * place.threads, .share = 0};
  }
  const auto find = [](std::string_view device) {
    return std::ranges::find_if(
        kGpus, [&](const Gpu& gpu) { return device.find(gpu.name) != std::string_view::npos; });
  };
  auto gpu = find(place.device);
  if (gpu == kGpus.end()) gpu = find(kReference);
  if (named) *named = fmt::format("NVIDIA {}", gpu->name);
  const bool half = precision != config::Precision::kFloat32;
  const double share = half ? kShareOfHalf : kShareOfSingle;
  return {.macs_per_second = share * (half ? gpu->half : gpu->single) * 1e12 / 2, .share = share};
}

TrialTimes::TrialTimes(Place place, std::vector<Calibration> calibrations, std::vector<Rate> rates,
                       const ModelCounts& counts, const std::map<std::string, ImageCounts>& images)
    : place_{std::move(place)}, calibrations_{std::move(calibrations)}, rates_{std::move(rates)} {
  start_ = place_.is_gpu() ? kStartOnGpu : kStartOnCpu;
  std::vector<double> starts;
  for (const Calibration& calibration : calibrations_) {
    starts.push_back(calibration.start_seconds);
    checkpoint_ += calibration.checkpoint_seconds / static_cast<double>(calibrations_.size());
    const auto trial = trial_of(calibration.config);
    std::string missing;
    const auto work = trial ? workload_of(*trial, counts, images, missing) : std::nullopt;
    if (!work || calibration.step_seconds <= 0) continue;
    rates_.push_back({.family = work->family,
                      .precision = trial->recipe.precision,
                      .image_macs = work->step_macs,
                      .images = work->step_images,
                      .macs_per_second = work->step_images * work->step_macs / calibration.step_seconds});
  }
  if (!starts.empty()) {
    std::ranges::nth_element(starts, starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2));
    start_ = starts[starts.size() / 2];
  }
}

std::optional<TrialTimes::Fit> TrialTimes::fit(const Rate& wanted) const {
  const auto found = weighed(wanted, rates_, nullptr);
  if (!found) return std::nullopt;
  double squares = 0, nearest = 1e9;
  for (const Rate& rate : rates_) {
    nearest = std::min(nearest, distance(wanted, rate));
    if (const auto others = weighed(rate, rates_, &rate)) {
      const double error = *others - std::log(rate.macs_per_second);
      squares += error * error;
    }
  }
  const auto n = static_cast<double>(rates_.size());
  const double seen = n > 1 ? std::sqrt(squares / n * (1 + 1 / n)) : kSingleDeviation;
  // What is like none of those that were measured may be further off than they are from each other.
  const double unlike = kLikeDeviation + 0.1 * std::min(6.0, nearest);
  return Fit{.macs_per_second = std::exp(*found),
             .deviation = nearest < 0.01 && n > 1
                              ? std::max(kLikeDeviation, std::min(seen, 2 * kLikeDeviation))
                              : std::max(seen, unlike)};
}

TrialTime TrialTimes::of(const Workload& work, int gpus) const {
  const double parts = std::max(1, gpus), images = std::ceil(work.step_images / parts);
  const auto whole = [&](double step, double image) {
    return start_ + work.steps * step + work.evaluated / parts * image + checkpoint_;
  };
  TrialTime time;
  const auto own = std::ranges::find_if(calibrations_, [&](const Calibration& calibration) {
    return calibration.step_hash == work.step_hash &&
           (work.steps > 0 ? calibration.step_seconds : calibration.image_seconds) > 0;
  });
  const Rate wanted{.family = work.family,
                    .precision = work.trial.recipe.precision,
                    .image_macs = work.step_macs,
                    .images = images,
                    .macs_per_second = 0};
  if (own != calibrations_.end()) {
    // of a part of the batch the rest follows, and of several GPUs each takes a part
    const double measured = own->batch > 0 ? own->batch : work.step_images;
    const double step = own->step_seconds * images / work.step_images;
    const double image = own->image_seconds > 0
                             ? own->image_seconds
                             : own->step_seconds / work.step_images * work.image_macs / work.step_macs;
    const double deviation =
        std::hypot(kCalibrationDeviation, own->step_spread / std::sqrt(std::max(1, own->steps)),
                   0.25 * std::min(2.0, std::abs(std::log(images / measured))));
    time = around(
        own->start_seconds + work.steps * step + work.evaluated / parts * image + own->checkpoint_seconds,
        deviation, TrialTime::From::kCalibration);
    time.why = measured < images
                   ? fmt::format("measured with {:.0f} of {:.0f} images a step", measured, images)
                   : "measured";
  } else if (const auto like = fit(wanted)) {
    time = around(
        whole(images * work.step_macs / like->macs_per_second, work.image_macs / like->macs_per_second),
        like->deviation, TrialTime::From::kLike);
    time.why = "from its FLOPs at the rate of others";
  } else {
    const StatedRate stated = stated_rate(place_, work.trial.recipe.precision);
    const double seconds =
        whole(images * work.step_macs / stated.macs_per_second, work.image_macs / stated.macs_per_second);
    time = {.seconds = seconds,
            .low = seconds / kStatedFactor,
            .high = seconds * kStatedFactor,
            .from = TrialTime::From::kFlops,
            .why = "from its FLOPs at a stated rate"};
  }
  if (gpus > 1) {
    time.seconds *= kSeveralGpus;
    time.high *= kSeveralGpusAtWorst;
  }
  return time;
}

}  // namespace abl::planning
