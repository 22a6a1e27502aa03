// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/dense/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

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

probes::Array legend(const std::vector<std::string>& classes, int first) {
  auto colours = torch::empty({static_cast<std::int64_t>(classes.size()), 3}, torch::kFloat32);
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      colours[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(channel)] =
          static_cast<float>(colour_of_class(first + static_cast<int>(i))[channel]);
  return {.axes = {{"class", classes}, {"colour", {"red", "green", "blue"}}}, .values = colours};
}

}  // namespace abl::tasks
