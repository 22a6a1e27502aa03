// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"

/// Metrics by their names, the trainer's and others'. The one place that knows: the trainer says them by
/// these names and takes from here which checkpoint to keep, sweeps their columns' defaults, the store the
/// best of a run that no column judges.
namespace abl::protocol {

/// What the trainer emits (docs/trainer-protocol.md).
namespace metric {
/// What an evaluation measures, and of which weights.
inline constexpr char kVal[] = "val", kAverage[] = "val_ema";  ///< the running average of the weights
inline constexpr char kLoss[] = "loss", kTop1[] = "top1", kTop5[] = "top5";
/// Of a segmentation, in percent: mean intersection over union, mean accuracy of the classes, accuracy of all
/// pixels.
inline constexpr char kMeanIntersection[] = "miou", kMeanAccuracy[] = "macc", kPixelAccuracy[] = "aacc";
/// Of a detection, in percent: COCO's average precision of boxes and of masks, over overlaps from 0.5 to
/// 0.95, at one of them, and of things by their area (below 32², up to 96² pixels, above).
inline constexpr char kBoxAp[] = "box_ap", kBoxAp50[] = "box_ap50", kBoxAp75[] = "box_ap75",
                      kBoxApSmall[] = "box_ap_small", kBoxApMedium[] = "box_ap_medium",
                      kBoxApLarge[] = "box_ap_large";
inline constexpr char kMaskAp[] = "mask_ap", kMaskAp50[] = "mask_ap50", kMaskAp75[] = "mask_ap75",
                      kMaskApSmall[] = "mask_ap_small", kMaskApMedium[] = "mask_ap_medium",
                      kMaskApLarge[] = "mask_ap_large";
/// Of features that are judged by their nearest neighbours: the part of images, in percent, whose class these
/// vote for; and how far features are spread out (`feature_std`), 1 where they go in all directions alike, 0
/// where all are the same.
inline constexpr char kKnn10[] = "knn10", kKnn20[] = "knn20", kFeatureStd[] = "feature_std";
inline std::string of(std::string_view evaluated, std::string_view value) {
  return std::string{evaluated}.append("/").append(value);
}
/// The same while this is compiled.
template <const auto& evaluated, const auto& value>
inline constexpr auto kOf = [] {
  std::array<char, sizeof evaluated + sizeof value> name{};  // the slash has the place of one of the two '\0'
  char* const slash = std::copy_n(evaluated, sizeof evaluated - 1, name.data());
  *slash = '/';
  std::copy_n(value, sizeof value, slash + 1);
  return name;
}();

inline constexpr const char* kTrainLoss = "train/loss";
inline constexpr const char* kTrainTop1 = "train/top1";
inline constexpr const char* kTrainGradNorm = "train/grad_norm";
inline constexpr const char* kTrainSkippedSteps = "train/skipped_steps";
inline constexpr const char* kValLoss = kOf<kVal, kLoss>.data();
inline constexpr const char* kValTop1 = kOf<kVal, kTop1>.data();
inline constexpr const char* kValTop5 = kOf<kVal, kTop5>.data();
inline constexpr const char* kValKnn10 = kOf<kVal, kKnn10>.data();
inline constexpr const char* kValKnn20 = kOf<kVal, kKnn20>.data();
inline constexpr const char* kValFeatureStd = kOf<kVal, kFeatureStd>.data();
inline constexpr const char* kAverageLoss = kOf<kAverage, kLoss>.data();
inline constexpr const char* kAverageTop1 = kOf<kAverage, kTop1>.data();
inline constexpr const char* kAverageTop5 = kOf<kAverage, kTop5>.data();
inline constexpr const char* kValMeanIntersection = kOf<kVal, kMeanIntersection>.data();
inline constexpr const char* kLearningRate = "lr";
inline constexpr const char* kImagesPerSecond = "images_per_s";
inline constexpr const char* kMemoryBytes = "memory_bytes";
inline constexpr const char* kTimeData = "time/data";  ///< shares of the time, 0 to 1
inline constexpr const char* kTimeCheckpoints = "time/checkpoints";
inline constexpr const char* kTimeEvaluation = "time/evaluation";
}  // namespace metric

enum class Better { kHigher, kLower, kNone };
/// As sweeps and columns say it.
constexpr std::string_view name_of(Better better) {
  switch (better) {
    case Better::kHigher:
      return "higher";
    case Better::kLower:
      return "lower";
    case Better::kNone:
      return "none";
  }
  return {};
}

/// What is wanted of a metric or count: of a known one (`trainer_metrics`, `count_modes`), what stands there;
/// of others' what their words tell. Losses, errors, times and sizes are wanted low, learning rates neither;
/// accuracies, rates ("images_per_s") and what is not known, high; of what a probe finds, what it declares.
Better better_by_name(std::string_view metric);

/// True for what tells of the machine and the hour, not of the model: times, rates, memory and how busy it
/// is. Two trainings that are equal differ in these.
bool tells_of_the_machine(std::string_view metric);

/// What a number is printed in.
enum class Unit { kPercent, kMillion, kBillion };
constexpr std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::kPercent:
      return "%";
    case Unit::kMillion:
      return "M";
    case Unit::kBillion:
      return "G";
  }
  return {};
}
/// Empty where there is none.
constexpr std::string_view name_of(const std::optional<Unit>& unit) { return unit ? name_of(*unit) : ""; }

/// What is known of a number by its name.
struct Quantity {
  std::string_view name;
  std::optional<Unit> unit;
  Better better = Better::kLower;
};

/// The unit of a metric of the trainer, or of what a probe finds, where that is known.
std::optional<Unit> unit_by_name(std::string_view metric);

/// The metrics that the trainer emits.
std::span<const Quantity> trainer_metrics();
/// Those of them that no training of a task of that kind reports: what evaluations of others measure. Kinds
/// by their names in a trial's document; none: classification.
std::vector<std::string> never_reported(std::string_view task_kind);
/// What can be counted without training.
std::span<const Quantity> count_modes();

std::vector<std::string> names(std::span<const Quantity> quantities);
/// Null when there is none of that name.
const Quantity* find(std::span<const Quantity> quantities, std::string_view name);

}  // namespace abl::protocol
