// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/dense/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "images/masks/mask.h"

namespace abl::tasks {

images::Colour colour_of_class(int index) {
  if (index == 0) return {68, 68, 76};
  constexpr double kGoldenAngle = 137.50776405003785;  // degrees: neighbours in order are far apart in hue
  constexpr std::array<double, 3> kLightness{0.60, 0.45, 0.75};
  const double hue = std::fmod(kGoldenAngle * (index - 1), 360.0) / 60,
               light = kLightness[static_cast<std::size_t>(index) % kLightness.size()];
  const double chroma = 0.75 * (1 - std::abs(2 * light - 1));
  images::Colour colour{};
  for (const int channel : {0, 1, 2}) {  // of hue, saturation and lightness
    const double turned = std::fmod(hue + 6 - 2 * channel, 6.0);
    const double part = std::clamp(std::abs(turned - 3) - 1, 0.0, 1.0);
    colour[static_cast<std::size_t>(channel)] =
        static_cast<std::uint8_t>(std::lround(255 * (light + chroma * (part - 0.5))));
  }
  return colour;
}

images::Image drawn(const images::LabelMap& labels) {
  auto image = images::filled(labels.width, labels.height, {255, 255, 255});
  for (int y = 0; y < labels.height; ++y)
    for (int x = 0; x < labels.width; ++x)
      if (const auto label = labels.row(y)[x]; label != images::LabelMap::kIgnored)
        images::copy_pixel(colour_of_class(label).data(),
                           image.row(y) + std::size_t{3} * static_cast<std::size_t>(x));
  return image;
}

images::Image side_by_side(const std::vector<images::Image>& pictures, int longest) {
  constexpr int kGap = 4;
  const auto& first = pictures.front();
  const int step = std::max(1, (std::max(first.width, first.height) + longest - 1) / longest);
  const int width = (first.width + step - 1) / step, height = (first.height + step - 1) / step;
  const auto count = static_cast<int>(pictures.size());
  auto sheet = images::filled(count * (width + kGap) - kGap, height, {255, 255, 255});
  for (int i = 0; i < count; ++i)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        images::copy_pixel(pictures[static_cast<std::size_t>(i)].row(y * step) +
                               std::size_t{3} * static_cast<std::size_t>(x * step),
                           sheet.row(y) + std::size_t{3} * static_cast<std::size_t>(i * (width + kGap) + x));
  return sheet;
}

namespace {

constexpr int kGround = 1;  // colours before those of categories

void paint(images::Image& image, int x, int y, const images::Colour& colour, bool tint) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return;
  auto* const pixel = image.row(y) + std::size_t{3} * static_cast<std::size_t>(x);
  for (std::size_t channel = 0; channel < 3; ++channel)
    pixel[channel] =
        tint ? static_cast<std::uint8_t>((pixel[channel] + colour[channel]) / 2) : colour[channel];
}

void draw(images::Image& image, int category, const images::Box& box, const images::Mask& mask) {
  const auto colour = colour_of_class(kGround + category);
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

probes::Array legend(const std::vector<std::string>& classes, int first) {
  auto colours = torch::empty({static_cast<std::int64_t>(classes.size()), 3}, torch::kFloat32);
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      colours[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(channel)] =
          static_cast<float>(colour_of_class(first + static_cast<int>(i))[channel]);
  return {.axes = {{"class", classes}, {"colour", {"red", "green", "blue"}}}, .values = colours};
}

}  // namespace abl::tasks
