// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/coco_scoring.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "images/masks/mask.h"
#include "models/dense/mask_rcnn/mask_rcnn.h"
#include "protocol/metrics.h"
#include "worker/trainer/tasks/dense/draw.h"

namespace abl::tasks {

std::vector<scoring::Detection> in_own_size(const models::Detections& found, const models::ImageSize& seen,
                                            const models::ImageSize& own) {
  const auto boxes = models::scaled_boxes(found.boxes, seen, own).to(torch::kCPU, torch::kFloat64);
  const auto labels = found.labels.cpu(), scores = found.scores.to(torch::kCPU, torch::kFloat64);
  const auto masks =
      models::pasted_masks(found.masks.cpu(), boxes.to(torch::kFloat), own, /*threshold=*/0.5).contiguous();
  const auto height = static_cast<int>(own.height), width = static_cast<int>(own.width);
  std::vector<scoring::Detection> things;
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    const auto mask = masks[i].view(torch::kUInt8);
    const auto* const corners = boxes[i].const_data_ptr<double>();
    things.push_back(
        {.category = static_cast<int>(labels[i].item<std::int64_t>()) - 1,
         .score = scores[i].item<double>(),
         .box = {corners[0], corners[1], corners[2] - corners[0], corners[3] - corners[1]},
         .mask = images::mask_of_pixels(
             {mask.const_data_ptr<std::uint8_t>(), static_cast<std::size_t>(mask.numel())}, width, height)});
  }
  return things;
}

namespace {

/// Matches as a row of numbers, one picture after another: what ranks can give each other.
class Written {
 public:
  void add(const PictureMatches& matches) {
    add(matches.picture);
    add(matches.boxes);
    add(matches.masks);
  }
  const std::vector<double>& numbers() const { return numbers_; }

 private:
  template <class T>
  void add(T number) {
    numbers_.push_back(static_cast<double>(number));
  }
  void add(const scoring::ImageMatches& matches) {
    add(matches.found.size());
    for (const auto& [category, rank, score, marks] : matches.found) {
      add(category), add(rank), add(score);
      for (const auto& [matched, ignored] : marks) add(matched), add(ignored);
    }
    add(matches.wanted.size());
    for (const auto& [category, truths] : matches.wanted) {
      add(category);
      for (const auto count : truths) add(count);
    }
  }

  std::vector<double> numbers_;
};

/// The other way.
class Reader {
 public:
  explicit Reader(std::span<const double> numbers) : rest_{numbers} {}

  bool at_end() const { return rest_.empty(); }
  PictureMatches picture() {
    PictureMatches matches{.picture = next<std::uint32_t>(), .boxes = {}, .masks = {}};
    matches.boxes = this->matches();
    matches.masks = this->matches();
    return matches;
  }

 private:
  template <class T>
  T next() {
    const auto number = static_cast<T>(rest_.front());
    rest_ = rest_.subspan(1);
    return number;
  }
  scoring::ImageMatches matches() {
    scoring::ImageMatches matches;
    matches.found.resize(next<std::size_t>());
    for (auto& [category, rank, score, marks] : matches.found) {
      category = next<int>(), rank = next<int>(), score = next<double>();
      for (auto& [matched, ignored] : marks) matched = next<std::uint16_t>(), ignored = next<std::uint16_t>();
    }
    matches.wanted.resize(next<std::size_t>());
    for (auto& [category, truths] : matches.wanted) {
      category = next<int>();
      for (auto& count : truths) count = next<std::uint32_t>();
    }
    return matches;
  }

  std::span<const double> rest_;
};

}  // namespace

std::vector<PictureMatches> of_all_ranks(const std::vector<PictureMatches>& own, ranks::RankGroup& ranks) {
  Written written;
  for (const auto& picture : own) written.add(picture);
  const auto numbers = torch::tensor(written.numbers(), torch::kFloat64);
  const auto counts = ranks.gather(torch::tensor({numbers.numel()}, torch::kLong)).view({-1});
  const auto longest = counts.max().clamp_min(1).item<std::int64_t>();  // rows of one length travel
  const auto rows = ranks.gather(torch::constant_pad_nd(numbers, {0, longest - numbers.numel()}));
  std::vector<PictureMatches> all;
  for (std::int64_t rank = 0; rank < counts.numel(); ++rank) {
    const auto row = rows[rank].contiguous();
    Reader reader{
        {row.const_data_ptr<double>(), static_cast<std::size_t>(counts[rank].item<std::int64_t>())}};
    while (!reader.at_end()) all.push_back(reader.picture());
  }
  std::ranges::sort(all, {}, &PictureMatches::picture);
  return all;
}

namespace {

struct Names {
  const char *all, *at_50, *at_75, *small, *medium, *large;
};

}  // namespace

OfRegions scores_of(const std::vector<PictureMatches>& pictures, int categories) {
  const auto of = [&](scoring::ImageMatches PictureMatches::*regions) {
    std::vector<scoring::ImageMatches> matches;
    for (const auto& picture : pictures) matches.push_back(picture.*regions);
    return scoring::coco_scores(matches, categories);
  };
  return {.boxes = of(&PictureMatches::boxes), .masks = of(&PictureMatches::masks)};
}

std::map<std::string, double> average_precisions(const OfRegions& scores, const std::string& split) {
  namespace metric = protocol::metric;
  std::map<std::string, double> metrics;
  const auto add = [&](const scoring::Averages& averages, const Names& names) {
    const auto of_area = [&](scoring::Area area) {
      return averages.precision[static_cast<std::size_t>(area)];
    };
    for (const auto& [name, value] : {std::pair{names.all, averages.average_precision()},
                                      {names.at_50, averages.precision_50},
                                      {names.at_75, averages.precision_75},
                                      {names.small, of_area(scoring::Area::kSmall)},
                                      {names.medium, of_area(scoring::Area::kMedium)},
                                      {names.large, of_area(scoring::Area::kLarge)}})
      if (!std::isnan(value)) metrics[metric::of(split, name)] = 100 * value;
  };
  add(scores.boxes.mean, {metric::kBoxAp, metric::kBoxAp50, metric::kBoxAp75, metric::kBoxApSmall,
                          metric::kBoxApMedium, metric::kBoxApLarge});
  add(scores.masks.mean, {metric::kMaskAp, metric::kMaskAp50, metric::kMaskAp75, metric::kMaskApSmall,
                          metric::kMaskApMedium, metric::kMaskApLarge});
  return metrics;
}

namespace {

constexpr int kFirstColour = 1;  // of categories, behind that of the ground

/// In percent; NaN stays.
float percent(double value) { return static_cast<float>(100 * value); }

probes::Array precision_over_recall(const scoring::CocoScores& scores,
                                    const std::vector<std::string>& categories) {
  constexpr std::size_t kEvery = 5;  // of 101 recalls
  std::vector<std::string> recalls;
  for (std::size_t i = 0; i < scoring::kRecalls; i += kEvery)
    recalls.push_back(fmt::format("{:.2f}", scoring::recalls()[i]));
  auto values =
      torch::full({static_cast<std::int64_t>(recalls.size()), static_cast<std::int64_t>(categories.size())},
                  std::numeric_limits<float>::quiet_NaN(), torch::kFloat32);
  for (std::size_t c = 0; c < categories.size(); ++c)
    if (const auto& curves = scores.classes[c].curves; !curves.empty())
      for (std::size_t i = 0; i < recalls.size(); ++i)
        values[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(c)] =
            percent(curves.front().precision[i * kEvery]);
  return {.axes = {{"recall", recalls}, {"class", categories}}, .values = values};
}

}  // namespace

probes::Findings of_categories(const OfRegions& scores, const std::vector<std::string>& categories) {
  const auto& [boxes, masks] = scores;
  auto values = torch::empty({static_cast<std::int64_t>(categories.size()), 5}, torch::kFloat32);
  for (std::size_t c = 0; c < categories.size(); ++c) {
    const auto &box = boxes.classes[c].averages, &mask = masks.classes[c].averages;
    const std::array<float, 5> row{percent(box.average_precision()), percent(box.precision_50),
                                   percent(mask.average_precision()), percent(mask.precision_50),
                                   static_cast<float>(boxes.classes[c].truths)};
    for (std::size_t i = 0; i < row.size(); ++i)
      values[static_cast<std::int64_t>(c)][static_cast<std::int64_t>(i)] = row[i];
  }
  probes::Findings findings;
  findings.arrays = {{"classes",
                      {.axes = {{"class", categories},
                                {"percent", {"box AP", "box AP50", "mask AP", "mask AP50", "things"}}},
                       .values = values}},
                     {"precision-over-recall-of-boxes", precision_over_recall(boxes, categories)},
                     {"precision-over-recall-of-masks", precision_over_recall(masks, categories)},
                     {"legend", legend(categories, kFirstColour)}};
  findings.notes = {
      "precision over recall is at an overlap of 0.5; pictures show what has a score of at least 0.5"};
  return findings;
}

}  // namespace abl::tasks
