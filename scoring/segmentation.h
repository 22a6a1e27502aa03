// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "images/annotated.h"

namespace abl::scoring {

/// NaN where a class has no pixel to say it of; the means leave those out.
struct SegmentationScores {
  struct OfClass {
    double accuracy = 0;      ///< of its pixels, those that were told to be it
    double intersection = 0;  ///< of the pixels that are it or were told to be it, those that are both (IoU)
    std::uint64_t pixels = 0;
  };
  double accuracy = 0;           ///< aAcc: of all pixels, those that were told right
  double mean_accuracy = 0;      ///< mAcc
  double mean_intersection = 0;  ///< mIoU
  std::vector<OfClass> classes;
};

/// How many pixels of each class were told to be of each, over any number of pictures.
/// Source: mmsegmentation 1.2, evaluation/metrics/iou_metric.py. Deviations: values are not rounded to
/// hundredths of a percent, and a label beyond the classes is an error, where it is left out there.
class ConfusionMatrix {
 public:
  /// `classes`: 1 to 255. Throws: Error{kInvalidArgument} otherwise.
  explicit ConfusionMatrix(int classes);
  /// With what was counted, as `counts` gives it. Throws: Error{kInvalidArgument} for another number of them.
  ConfusionMatrix(int classes, std::vector<std::uint64_t> counts);

  /// `told` and `labels`: of the same pixels, in the same order. Pixels that are labelled
  /// LabelMap::kIgnored do not count. Throws: Error{kInvalidArgument} for another number of them, or a class
  /// that there is not; nothing is counted then.
  void add(std::span<const std::uint8_t> told, std::span<const std::uint8_t> labels);
  /// What was counted elsewhere, of as many classes.
  void add(const ConfusionMatrix& other);

  SegmentationScores scores() const;

  int classes() const { return classes_; }
  /// Shape: [classes, classes]: of each class in turn, what its pixels were told to be.
  std::span<const std::uint64_t> counts() const { return counts_; }

 private:
  int classes_;
  std::vector<std::uint64_t> counts_;
};

}  // namespace abl::scoring
