// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <string>

#include "models/dense/trunk_maps.h"
#include "tests/segmentation/reference.h"

namespace abl::models {
namespace {

/// The case says in its name whether maps are brought to a pyramid; a Swin's are one.
MapScale scale_of(const std::string& name) {
  return name.find("xcit") != name.npos || name.find("pyramid") != name.npos ? MapScale::kPyramid
                                                                             : MapScale::kPatch;
}

class MapsParity : public ::testing::TestWithParam<std::string> {};

TEST_P(MapsParity, AreThoseOfTheReference) {
  const Reference reference{GetParam()};
  const auto config = reference.config();
  const bool takes_all = scale_of(GetParam()) == MapScale::kPatch || config.at("family") == "vit";
  const auto backbone = build_feature_maps(
      backbone_of(config.at("family"), config.at("sizes")),
      {.layers = takes_all && config.at("family") != "swin" && config.at("family") != "swin-v2"
                     ? std::vector<std::int64_t>{1, 2, 3, 4}
                     : std::vector<std::int64_t>{},
       .scale = scale_of(GetParam())});
  auto& module = dynamic_cast<torch::nn::Module&>(*backbone);
  load_state(module, reference.all("sd."));
  module.eval();

  const auto images = reference.at("input");
  const auto maps = backbone->maps(images);
  const auto expected = reference.all("map.");
  ASSERT_EQ(maps.size(), expected.size());
  for (std::size_t level = 0; level < maps.size(); ++level) {
    EXPECT_LT(relative_error(maps[level], expected.at(std::to_string(level))), 1e-4) << "map " << level;
    EXPECT_EQ(maps[level].size(1), backbone->channels().at(level));
  }
  module.to(torch::kDouble);
  const auto exact = backbone->maps(images.to(torch::kDouble));
  auto loss = torch::zeros({}, torch::kDouble);
  for (std::size_t level = 0; level < exact.size(); ++level)
    loss = loss + (exact[level] * reference.at("along." + std::to_string(level))).sum();
  loss.backward();
  expect_gradients(module, reference);
  for (const auto& parameter : module.named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key() << " has no part in the maps";
}

INSTANTIATE_TEST_SUITE_P(Backbones, MapsParity,
                         ::testing::Values("maps_xcit_16", "maps_xcit_8", "maps_vit", "maps_vit_larger",
                                           "maps_vit_pyramid", "maps_simple_vit", "maps_simple_vit_larger",
                                           "maps_swin", "maps_swin_2", "maps_swin_v2"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
