// SPDX-License-Identifier: Apache-2.0
#include "config/families.h"

#include <algorithm>
#include <array>

namespace abl::config {
namespace {

constexpr std::array kFamilies{
    Family{"simple-vit", "ViT without class token, with fixed positions: the backbone of the MSF paper"},
    Family{"vit", "ViT with class token and learned positions, as in timm"},
    Family{"key-vit",
           "ViT of the manifold key paper: norms around the patch projection, no bias in q, k and v"},
    Family{"swin", "Swin transformer: attention in windows, in stages"},
    Family{"swin-v2", "Swin transformer V2: cosine attention, norms at the end of the branches"},
    Family{"xcit", "XCiT: attention over channels, local patch interaction, class attention at the end"},
    Family{"resnet", "ResNet and ResNeXt"},
    Family{"efficientnet", "EfficientNet-B0, and by factors its larger relatives"},
    Family{"regnet", "RegNetY"},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

bool is_for(const std::vector<std::string>& listed, const std::string& family) {
  return listed.empty() || family.empty() || std::ranges::find(listed, family) != listed.end();
}

std::string all_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace abl::config
