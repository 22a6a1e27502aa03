// SPDX-License-Identifier: Apache-2.0
#include "scoring/segmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace abl::scoring {
namespace {

constexpr int kValues = 256;  // of a byte

double part(std::uint64_t some, std::uint64_t all) {
  return all == 0 ? std::numeric_limits<double>::quiet_NaN()
                  : static_cast<double>(some) / static_cast<double>(all);
}

template <class Value>
double mean(const std::vector<SegmentationScores::OfClass>& classes, Value value) {
  double sum = 0;
  std::uint64_t count = 0;
  for (const auto& of_class : classes)
    if (!std::isnan(of_class.*value)) sum += of_class.*value, ++count;
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int classes) : classes_{classes} {
  if (classes < 1 || classes > images::LabelMap::kIgnored)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} pixel classes; expected 1 to {}", classes, images::LabelMap::kIgnored)};
  counts_.resize(static_cast<std::size_t>(classes) * static_cast<std::size_t>(classes));
}

ConfusionMatrix::ConfusionMatrix(int classes, std::vector<std::uint64_t> counts) : ConfusionMatrix{classes} {
  if (counts.size() != counts_.size())
    throw Error{Code::kInvalidArgument,
                fmt::format("{} counts of {} classes; expected {}", counts.size(), classes, counts_.size())};
  counts_ = std::move(counts);
}

void ConfusionMatrix::add(std::span<const std::uint8_t> told, std::span<const std::uint8_t> labels) {
  if (told.size() != labels.size())
    throw Error{Code::kInvalidArgument,
                fmt::format("{} predicted and {} labelled pixels; expected the same number", told.size(),
                            labels.size())};
  std::vector<std::uint64_t> pairs(std::size_t{kValues} * kValues);  // [label, told], whatever the bytes are
  for (std::size_t i = 0; i < told.size(); ++i) ++pairs[std::size_t{labels[i]} * kValues + told[i]];
  const auto each = [&](const auto& visit) {
    for (int label = 0; label < images::LabelMap::kIgnored; ++label)
      for (int as = 0; as < kValues; ++as)
        if (const auto pixels = pairs[static_cast<std::size_t>(label * kValues + as)]; pixels > 0)
          visit(label, as, pixels);
  };
  each([&](int label, int as, std::uint64_t) {
    if (label >= classes_ || as >= classes_)
      throw Error{
          Code::kInvalidArgument,
          label >= classes_
              ? fmt::format("pixel label {} is out of range; expected 0 to {}, or 255 (ignored)", label,
                            classes_ - 1)
              : fmt::format("predicted class {} is out of range; expected 0 to {}", as, classes_ - 1)};
  });
  each([&](int label, int as, std::uint64_t pixels) {
    counts_[static_cast<std::size_t>(label * classes_ + as)] += pixels;
  });
}

void ConfusionMatrix::add(const ConfusionMatrix& other) {
  if (other.classes_ != classes_)
    throw Error{Code::kInvalidArgument,
                fmt::format("counts of {} classes; expected {}", other.classes_, classes_)};
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

SegmentationScores ConfusionMatrix::scores() const {
  const auto n = static_cast<std::size_t>(classes_);
  std::vector<std::uint64_t> labelled(n), told(n);
  std::uint64_t all = 0, right = 0;
  for (std::size_t label = 0; label < n; ++label)
    for (std::size_t as = 0; as < n; ++as) {
      const std::uint64_t pixels = counts_[label * n + as];
      labelled[label] += pixels, told[as] += pixels, all += pixels;
      if (label == as) right += pixels;
    }
  SegmentationScores scores{.accuracy = part(right, all)};
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t both = counts_[i * n + i];
    scores.classes.push_back({.accuracy = part(both, labelled[i]),
                              .intersection = part(both, labelled[i] + told[i] - both),
                              .pixels = labelled[i]});
  }
  scores.mean_accuracy = mean(scores.classes, &SegmentationScores::OfClass::accuracy);
  scores.mean_intersection = mean(scores.classes, &SegmentationScores::OfClass::intersection);
  return scores;
}

}  // namespace abl::scoring
