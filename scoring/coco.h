// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "images/annotated.h"

/// Average precision and recall of detections, as COCO has them. Two steps: `match` looks at one picture and
/// may run in any number of threads; `coco_scores` sums up.
///
/// Source: pycocotools 2.0.11, cocoeval.py (iouType "bbox" and "segm", its default parameters), equal to
/// rounding. Deviations: what does not exist is NaN where it has -1; an annotation's id does not matter
/// (there a truth with id 0 is never matched); the area of a detection is that of its mask where masks are
/// compared, as pycocotools has it for results without boxes.
namespace abl::scoring {

/// One thing that a model found.
struct Detection {
  int category = 0;  ///< from 0
  double score = 0;
  images::Box box;
  images::Mask mask;  ///< as large as the picture, where masks are compared
};

enum class Regions { kBoxes, kMasks };

/// Which things count: all, or those whose area is in a range (bounds of 32² and 96² pixels). Others are
/// ignored: finding them is neither right nor wrong.
enum class Area : std::size_t { kAll, kSmall, kMedium, kLarge };
inline constexpr std::size_t kAreas = 4, kOverlaps = 10, kRecalls = 101;
/// Detections of a category in a picture that count, those of the highest scores.
inline constexpr std::array<int, 3> kMostFound{1, 10, 100};

/// 0.5, 0.55 … 0.95: overlaps from which a detection is right.
std::array<double, kOverlaps> overlaps();
/// 0, 0.01 … 1: recalls at which precision is read.
std::array<double, kRecalls> recalls();

/// What is kept of a picture.
struct ImageMatches {
  /// A detection; a bit for each of `overlaps()`.
  struct Marks {
    std::uint16_t matched = 0;  ///< with a truth
    std::uint16_t ignored = 0;  ///< neither right nor wrong
  };
  struct Found {
    int category = 0;
    int rank = 0;  ///< among those of its category, from 0, by score
    double score = 0;
    std::array<Marks, kAreas> marks;
  };
  /// How many truths of a category there are to be found.
  struct Wanted {
    int category = 0;
    std::array<std::uint32_t, kAreas> truths{};
  };
  std::vector<Found> found;  ///< at most the last of kMostFound for a category
  std::vector<Wanted> wanted;
};

/// Compares a picture's detections with its truths: each detection, the best first, takes the truth of its
/// category that it overlaps most and that none before it took; a crowd may be taken by many, and ignores
/// them. Thread: any.
/// Throws: Error{kInvalidArgument} for a score that is no finite number, or masks of another size.
ImageMatches match(std::span<const images::Instance> truths, std::span<const Detection> found,
                   Regions regions);

/// NaN where there is no truth.
struct Averages {
  std::array<double, kAreas> precision{};  ///< AP, by Area: mean over overlaps and recalls, at 100 detections
  double precision_50 = 0, precision_75 = 0;  ///< AP50, AP75: at one overlap
  std::array<double, kAreas> recall{};        ///< AR, by Area: mean over overlaps, at 100 detections
  std::array<double, kMostFound.size()> recall_of_best{};  ///< AR of all areas, by kMostFound

  double average_precision() const { return precision[0]; }
};

/// Precision over recall at one overlap, of all areas, at 100 detections.
struct Curve {
  std::array<double, kRecalls> precision{};  ///< the best at this recall or beyond; 0 where it is not reached
  std::array<double, kRecalls> score{};      ///< of the detection that reaches it; 0 where none does
};

struct ClassScores {
  std::uint64_t truths = 0;      ///< without crowds
  std::uint64_t detections = 0;  ///< at most 100 a picture
  Averages averages;
  std::vector<Curve> curves;  ///< [kOverlaps]; empty without truths
};

struct CocoScores {
  Averages mean;  ///< over the classes that have truths
  std::vector<ClassScores> classes;
};

/// `pictures`: in a fixed order, for which of equal scores comes first; pycocotools' is that of their ids.
/// Throws: Error{kInvalidArgument} for a category beyond `categories`.
CocoScores coco_scores(std::span<const ImageMatches> pictures, int categories);

}  // namespace abl::scoring
