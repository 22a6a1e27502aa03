// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planning/workload.h"
#include "storage/measured_store.h"

namespace abl::planning {

/// A slot that trials run in, or many of its kind.
struct Place {
  std::string device;     ///< "NVIDIA H100 80GB HBM3"; of a CPU empty: any
  int threads = 0;        ///< of a CPU; 0: a GPU
  std::string assumed{};  ///< why no connected worker is such a place; empty: one is
  bool is_gpu() const { return threads == 0; }
};

/// Seconds of one trial in a slot of its own; nine of ten are expected from `low` to `high`.
struct TrialTime {
  enum class From { kRuns, kCalibration, kLike, kFlops };  ///< the surest first
  double seconds = 0, low = 0, high = 0;
  From from = From::kFlops;
  std::string why;  ///< for people: "3 runs"
};
constexpr std::string_view name_of(TrialTime::From from) {
  switch (from) {
    case TrialTime::From::kRuns:
      return "runs";
    case TrialTime::From::kCalibration:
      return "calibration";
    case TrialTime::From::kLike:
      return "like";
    case TrialTime::From::kFlops:
      return "flops";
  }
  return {};
}

/// Of runs of the same configuration or work: their mean, and how far the next may lie from it.
TrialTime time_from_runs(const storage::Measured& measured);

/// How fast a place was at something.
struct Rate {
  std::string family;
  config::Precision precision = config::Precision::kFloat32;
  double image_macs = 0;  ///< multiply-adds of an image of a step
  double images = 0;      ///< of a step
  double macs_per_second = 0;
};

/// What is assumed of a device that nobody has measured.
struct StatedRate {
  double macs_per_second = 0;
  double share = 0;  ///< of its peak; 0: of a CPU
};
/// `known`: whether the device is in the table; another GPU is taken for the one that the answer names.
StatedRate stated_rate(const Place& place, config::Precision precision, std::string* named = nullptr);

/// How long trials take in a place: by what was measured there, of them or of others, whose multiply-adds a
/// second theirs are compared with; otherwise by a stated rate.
class TrialTimes {
 public:
  /// `calibrations`, `rates`: of this place. The rates are of completed runs.
  TrialTimes(Place place, std::vector<storage::Calibration> calibrations, std::vector<Rate> rates,
             const ModelCounts& counts, const std::map<std::string, ImageCounts>& images);

  /// `gpus`: of the trial, 0 or 1: one slot.
  TrialTime of(const Workload& work, int gpus) const;
  const Place& place() const { return place_; }
  /// The range of the rates that times followed from, in multiply-adds a second; nothing: none did.
  const std::vector<Rate>& rates() const { return rates_; }

 private:
  struct Fit {
    double macs_per_second = 0, deviation = 0;  ///< of the logarithm
  };
  std::optional<Fit> fit(const Rate& wanted) const;

  Place place_;
  std::vector<storage::Calibration> calibrations_;
  std::vector<Rate> rates_;
  double start_ = 0, checkpoint_ = 0;
};

}  // namespace abl::planning
