// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "images/masks/overlap.h"
#include "scoring/coco.h"

namespace abl::scoring {
namespace {

struct Range {
  double from, to;
};
constexpr std::array<Range, kAreas> kRanges{
    {{0, 1e10}, {0, 32.0 * 32}, {32.0 * 32, 96.0 * 96}, {96.0 * 96, 1e10}}};

bool is_outside(double area, const Range& range) { return area < range.from || area > range.to; }

/// The truths and detections of one category in one picture.
class Pairing {
 public:
  Pairing(std::vector<const images::Instance*> truths, std::vector<const Detection*> found, Regions regions)
      : truths_{std::move(truths)}, found_{std::move(found)}, regions_{regions} {
    std::ranges::stable_sort(found_, std::ranges::greater{}, &Detection::score);
    found_.resize(std::min<std::size_t>(found_.size(), kMostFound.back()));
    measure();
  }

  void add_to(ImageMatches& matches, int category) const {
    const std::size_t first = matches.found.size();
    for (std::size_t d = 0; d < found_.size(); ++d)
      matches.found.push_back(
          {.category = category, .rank = static_cast<int>(d), .score = found_[d]->score, .marks = {}});
    ImageMatches::Wanted wanted{.category = category};
    for (std::size_t area = 0; area < kAreas; ++area)
      wanted.truths[area] = pair(area, std::span{matches.found}.subspan(first));
    if (!truths_.empty()) matches.wanted.push_back(wanted);
  }

 private:
  void measure() {
    std::vector<images::Box> found_bounds, truth_bounds;
    for (const auto* found : found_) {
      areas_.push_back(regions_ == Regions::kMasks ? static_cast<double>(images::area(found->mask))
                                                   : found->box.area());
      if (regions_ == Regions::kMasks) found_bounds.push_back(images::bounds(found->mask));
    }
    if (regions_ == Regions::kMasks)
      for (const auto* truth : truths_) truth_bounds.push_back(images::bounds(truth->mask));
    overlaps_.reserve(found_.size() * truths_.size());
    for (std::size_t d = 0; d < found_.size(); ++d)
      for (std::size_t g = 0; g < truths_.size(); ++g) {
        const auto against = truths_[g]->crowd ? images::Against::kCrowd : images::Against::kThing;
        overlaps_.push_back(regions_ == Regions::kMasks
                                ? images::overlap(found_[d]->mask, found_bounds[d], truths_[g]->mask,
                                                  truth_bounds[g], against)
                                : images::overlap(found_[d]->box, truths_[g]->box, against));
      }
  }

  /// Marks the detections for one range of areas. Returns: how many truths are to be found.
  std::uint32_t pair(std::size_t area, std::span<ImageMatches::Found> marked) const {
    std::vector<bool> ignored(truths_.size());
    for (std::size_t g = 0; g < truths_.size(); ++g)
      ignored[g] = truths_[g]->crowd || is_outside(truths_[g]->area, kRanges[area]);
    std::vector<std::size_t> order(truths_.size());  // those that count first
    std::iota(order.begin(), order.end(), 0u);
    const auto counted = std::ranges::stable_partition(order, [&](std::size_t g) { return !ignored[g]; });
    const auto thresholds = overlaps();
    for (std::size_t t = 0; t < kOverlaps; ++t) {
      const auto bit = static_cast<std::uint16_t>(1u << t);
      std::vector<bool> taken(truths_.size());
      for (std::size_t d = 0; d < found_.size(); ++d) {
        const auto best = best_of(d, thresholds[t], order, ignored, taken);
        auto& marks = marked[d].marks[area];
        if (best < truths_.size()) {
          taken[best] = true;
          marks.matched |= bit;
          if (ignored[best]) marks.ignored |= bit;
        } else if (is_outside(areas_[d], kRanges[area])) {
          marks.ignored |= bit;
        }
      }
    }
    return static_cast<std::uint32_t>(counted.begin() - order.begin());
  }

  /// The truth that detection `d` takes, or behind the last.
  std::size_t best_of(std::size_t d, double threshold, const std::vector<std::size_t>& order,
                      const std::vector<bool>& ignored, const std::vector<bool>& taken) const {
    double least = std::min(threshold, 1 - 1e-10);
    std::size_t best = truths_.size();
    for (const std::size_t g : order) {
      if (taken[g] && !truths_[g]->crowd) continue;
      if (best < truths_.size() && !ignored[best] && ignored[g]) break;  // one that counts goes first
      const double overlap = overlaps_[d * truths_.size() + g];
      if (overlap < least) continue;
      least = overlap, best = g;  // of equal ones the last
    }
    return best;
  }

  std::vector<const images::Instance*> truths_;
  std::vector<const Detection*> found_;
  const Regions regions_;
  std::vector<double> areas_;     ///< of `found_`
  std::vector<double> overlaps_;  ///< [found, truths]
};

/// Those of the category that `rest` begins with, which are taken from it.
template <class Thing>
std::vector<const Thing*> take_category(std::span<const Thing* const>& rest, int category) {
  const auto end =
      std::ranges::find_if(rest, [&](const Thing* thing) { return thing->category != category; });
  std::vector<const Thing*> taken{rest.begin(), end};
  rest = rest.subspan(taken.size());
  return taken;
}

template <class Thing>
std::vector<const Thing*> by_category(std::span<const Thing> things) {
  std::vector<const Thing*> sorted;
  for (const Thing& thing : things) sorted.push_back(&thing);
  std::ranges::stable_sort(sorted, std::ranges::less{}, &Thing::category);
  return sorted;
}

}  // namespace

std::array<double, kOverlaps> overlaps() {
  constexpr double kFrom = 0.5, kTo = 0.95;
  std::array<double, kOverlaps> values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i) * ((kTo - kFrom) / (kOverlaps - 1)) + kFrom;
  values.back() = kTo;
  return values;
}

std::array<double, kRecalls> recalls() {
  std::array<double, kRecalls> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) * (1.0 / (kRecalls - 1));
  values.back() = 1;
  return values;
}

ImageMatches match(std::span<const images::Instance> truths, std::span<const Detection> found,
                   Regions regions) {
  for (const Detection& detection : found)
    if (!std::isfinite(detection.score))
      throw Error{Code::kInvalidArgument,
                  fmt::format("a detection has score {}; expected a finite number", detection.score)};
  const auto sorted_truths = by_category(truths);
  const auto sorted_found = by_category(found);
  std::span rest_truths{sorted_truths};
  std::span rest_found{sorted_found};
  ImageMatches matches;
  while (!rest_truths.empty() || !rest_found.empty()) {
    const int category = rest_truths.empty() ? rest_found.front()->category
                         : rest_found.empty()
                             ? rest_truths.front()->category
                             : std::min(rest_truths.front()->category, rest_found.front()->category);
    Pairing{take_category<images::Instance>(rest_truths, category),
            take_category<Detection>(rest_found, category), regions}
        .add_to(matches, category);
  }
  return matches;
}

}  // namespace abl::scoring
