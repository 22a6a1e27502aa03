// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "images/masks/mask.h"
#include "worker/trainer/tasks/dense/draw.h"

namespace abl::tasks {
namespace {

constexpr int kFirstColour = 1;  // 0 is the ground's

void paint(images::Image& image, int x, int y, const images::Colour& colour, bool tint) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return;
  auto* const pixel = image.row(y) + std::size_t{3} * static_cast<std::size_t>(x);
  for (std::size_t channel = 0; channel < 3; ++channel)
    pixel[channel] =
        tint ? static_cast<std::uint8_t>((pixel[channel] + colour[channel]) / 2) : colour[channel];
}

void draw(images::Image& image, int category, const images::Box& box, const images::Mask& mask) {
  const auto colour = colour_of_class(kFirstColour + category);
  if (mask.width == image.width && mask.height == image.height) {
    const auto pixels = images::pixels_of(mask);
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x)
        if (pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) +
                   static_cast<std::size_t>(x)])
          paint(image, x, y, colour, /*tint=*/true);
  }
  const auto place = [](double value) { return static_cast<int>(std::lround(std::clamp(value, -1e6, 1e6))); };
  const int left = place(box.left), top = place(box.top), right = place(box.left + box.width) - 1,
            bottom = place(box.top + box.height) - 1;
  for (int x = std::max(0, left); x <= std::min(right, image.width - 1); ++x)
    paint(image, x, top, colour, false), paint(image, x, bottom, colour, false);
  for (int y = std::max(0, top); y <= std::min(bottom, image.height - 1); ++y)
    paint(image, left, y, colour, false), paint(image, right, y, colour, false);
}

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

images::Image with_things(const images::Image& picture, const std::vector<images::Instance>& truths,
                          const std::vector<scoring::Detection>& found) {
  constexpr double kSure = 0.5;
  auto annotated = picture, told = picture;
  for (const auto& thing : truths) draw(annotated, thing.category, thing.box, thing.mask);
  for (auto thing = found.rbegin(); thing != found.rend(); ++thing)  // the surest on top
    if (thing->score >= kSure) draw(told, thing->category, thing->box, thing->mask);
  return side_by_side({annotated, told});
}

probes::Findings of_categories(const scoring::CocoScores& boxes, const scoring::CocoScores& masks,
                               const std::vector<std::string>& categories) {
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
