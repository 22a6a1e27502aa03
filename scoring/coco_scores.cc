// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "scoring/coco.h"

namespace abl::scoring {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
using Found = ImageMatches::Found;

/// Mean of the numbers that there are.
class Mean {
 public:
  void add(double value) {
    if (!std::isnan(value)) sum_ += value, ++count_;
  }
  double value() const { return count_ == 0 ? kNone : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

/// All that was found of a category, the highest score first, and what there was to find.
struct Category {
  std::vector<const Found*> found;
  std::array<std::uint64_t, kAreas> truths{};
};

std::vector<Category> by_category(std::span<const ImageMatches> pictures, int categories) {
  std::vector<Category> all(static_cast<std::size_t>(categories));
  const auto of = [&](int category) -> Category& {
    if (category < 0 || category >= categories)
      throw Error{Code::kInvalidArgument,
                  fmt::format("category {}; expected 0 to {}", category, categories - 1)};
    return all[static_cast<std::size_t>(category)];
  };
  for (const ImageMatches& picture : pictures) {
    for (const Found& found : picture.found) of(found.category).found.push_back(&found);
    for (const auto& wanted : picture.wanted)
      for (std::size_t area = 0; area < kAreas; ++area)
        of(wanted.category).truths[area] += wanted.truths[area];
  }
  for (Category& category : all)
    std::ranges::stable_sort(category.found, std::ranges::greater{}, &Found::score);
  return all;
}

/// Right, wrong or neither, by one overlap.
bool counts(const ImageMatches::Marks& marks, unsigned bit) { return (marks.ignored & bit) == 0; }
bool is_right(const ImageMatches::Marks& marks, unsigned bit) { return (marks.matched & bit) != 0; }

/// The part of the truths that is found by the `most` best of each picture.
double recall_of(const Category& category, std::size_t area, unsigned bit, int most) {
  std::uint64_t right = 0;
  for (const Found* found : category.found)
    right += found->rank < most && counts(found->marks[area], bit) && is_right(found->marks[area], bit);
  return static_cast<double>(right) / static_cast<double>(category.truths[area]);
}

/// Precision at the recalls, and the recall that is reached.
struct Traced {
  Curve curve;
  double recall = 0;
};

Traced trace(const Category& category, std::size_t area, unsigned bit) {
  const double truths = static_cast<double>(category.truths[area]);
  std::vector<double> recall, precision;
  recall.reserve(category.found.size()), precision.reserve(category.found.size());
  double right = 0, wrong = 0;
  for (const Found* found : category.found) {
    const auto& marks = found->marks[area];
    if (counts(marks, bit)) (is_right(marks, bit) ? right : wrong) += 1;
    recall.push_back(right / truths);
    precision.push_back(right / (wrong + right + std::numeric_limits<double>::epsilon()));
  }
  for (std::size_t i = precision.size(); i > 1; --i)
    precision[i - 2] = std::max(precision[i - 2], precision[i - 1]);
  Traced traced{.recall = recall.empty() ? 0 : recall.back()};
  std::size_t at = 0;
  const auto wanted = recalls();
  for (std::size_t r = 0; r < kRecalls; ++r) {
    while (at < recall.size() && recall[at] < wanted[r]) ++at;
    if (at == recall.size()) break;
    traced.curve.precision[r] = precision[at], traced.curve.score[r] = category.found[at]->score;
  }
  return traced;
}

ClassScores scores_of(const Category& category) {
  ClassScores scores{.truths = category.truths[0], .detections = category.found.size()};
  Averages& averages = scores.averages;
  averages.precision.fill(kNone), averages.recall.fill(kNone), averages.recall_of_best.fill(kNone);
  averages.precision_50 = averages.precision_75 = kNone;
  for (std::size_t area = 0; area < kAreas; ++area) {
    if (category.truths[area] == 0) continue;
    Mean precision, recall;
    for (unsigned t = 0; t < kOverlaps; ++t) {
      const Traced traced = trace(category, area, 1u << t);
      Mean of_curve;
      for (const double value : traced.curve.precision) of_curve.add(value), precision.add(value);
      recall.add(traced.recall);
      if (area != 0) continue;
      if (t == 0) averages.precision_50 = of_curve.value();
      if (t == kOverlaps / 2) averages.precision_75 = of_curve.value();
      scores.curves.push_back(traced.curve);
    }
    averages.precision[area] = precision.value(), averages.recall[area] = recall.value();
  }
  for (std::size_t i = 0; i < kMostFound.size() && scores.truths > 0; ++i) {
    Mean recall;
    for (unsigned t = 0; t < kOverlaps; ++t) recall.add(recall_of(category, 0, 1u << t, kMostFound[i]));
    averages.recall_of_best[i] = recall.value();
  }
  return scores;
}

Averages mean_of(std::span<const ClassScores> classes) {
  const auto mean = [&](auto&& of) {
    Mean all;
    for (const ClassScores& scores : classes) all.add(of(scores.averages));
    return all.value();
  };
  Averages averages;
  for (std::size_t i = 0; i < kAreas; ++i) {
    averages.precision[i] = mean([i](const Averages& of) { return of.precision[i]; });
    averages.recall[i] = mean([i](const Averages& of) { return of.recall[i]; });
  }
  for (std::size_t i = 0; i < kMostFound.size(); ++i)
    averages.recall_of_best[i] = mean([i](const Averages& of) { return of.recall_of_best[i]; });
  averages.precision_50 = mean([](const Averages& of) { return of.precision_50; });
  averages.precision_75 = mean([](const Averages& of) { return of.precision_75; });
  return averages;
}

}  // namespace

CocoScores coco_scores(std::span<const ImageMatches> pictures, int categories) {
  CocoScores scores;
  for (const Category& category : by_category(pictures, categories))
    scores.classes.push_back(scores_of(category));
  scores.mean = mean_of(scores.classes);
  return scores;
}

}  // namespace abl::scoring
