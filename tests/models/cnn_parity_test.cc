// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "models/backbones/efficient_net.h"
#include "models/backbones/reg_net.h"
#include "models/backbones/resnet.h"
#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;
using Sizes = std::vector<std::int64_t>;

std::unique_ptr<Classifier> resnet_of(const Json& config) {
  return std::make_unique<ResNetImpl>(ResNetOptions{.classes = config.at("classes"),
                                                    .layers = config.at("layers").get<Sizes>(),
                                                    .widths = config.at("widths").get<Sizes>(),
                                                    .has_bottlenecks = config.value("bottleneck", true),
                                                    .groups = config.at("groups"),
                                                    .width_per_group = config.at("width_per_group")});
}

std::unique_ptr<Classifier> efficient_net_of(const Json& config) {
  EfficientNetOptions options{
      .classes = config.at("classes"), .stem = config.at("stem"), .head = config.at("head"), .stages = {}};
  for (const auto& stage : config.at("stages"))
    options.stages.push_back({.depth = stage.at(0),
                              .width = stage.at(1),
                              .kernel = stage.at(2),
                              .stride = stage.at(3),
                              .expansion = stage.at(4)});
  return std::make_unique<EfficientNetImpl>(options);
}

std::unique_ptr<Classifier> reg_net_of(const Json& config) {
  const RegNetRule rule{.depth = config.at("depth"),
                        .initial_width = config.at("initial_width"),
                        .width_slope = config.at("width_slope"),
                        .width_multiplier = config.at("width_multiplier"),
                        .group_width = config.at("group_width")};
  return std::make_unique<RegNetImpl>(RegNetOptions{.classes = config.at("classes"),
                                                    .stem = config.at("stem"),
                                                    .stages = stages_of(rule),
                                                    .se_ratio = config.at("se_ratio")});
}

TEST(ResNetParity, WithGroupsIsTimms) {
  const ParityCase reference{"timm_resnet_small_case"};
  const auto config = reference.config();
  ResNetImpl model{{.classes = config.at("num_classes"),
                    .layers = config.at("layers").get<Sizes>(),
                    .groups = config.at("groups"),
                    .width_per_group = config.at("width_per_group")}};
  expect_parity(model, reference);
}

class CnnParity : public ::testing::TestWithParam<std::string> {};

TEST_P(CnnParity, IsTimms) {
  const ParityCase reference{GetParam()};
  const auto config = reference.config();
  const std::string family = config.at("family");
  const auto model = family == "resnet"          ? resnet_of(config)
                     : family == "efficient_net" ? efficient_net_of(config)
                                                 : reg_net_of(config);
  expect_parity(*model, reference);
}

INSTANTIATE_TEST_SUITE_P(Small, CnnParity,
                         ::testing::Values("timm_resnet_plain", "timm_resnet_basic", "timm_resnet_widths",
                                           "timm_efficientnet_small", "timm_regnety_small",
                                           "timm_regnety_narrow"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
