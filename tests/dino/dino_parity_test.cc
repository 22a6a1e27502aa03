// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"
#include "models/dino/dino.h"
#include "models/dino/loss.h"
#include "models/weights/safetensors.h"
#include "models/weights/state.h"
#include "tests/models/relative_error.h"

namespace abl::models {
namespace {

ModelOptions backbone_of(const nlohmann::json& config) {
  const auto& sizes = config.at("sizes");
  if (config.at("family") == "xcit")
    return XcitOptions{.image_size = sizes.at("img_size"),
                       .patch = sizes.at("patch_size"),
                       .dim = sizes.at("embed_dim"),
                       .heads = sizes.at("num_heads"),
                       .eta = sizes.at("eta"),
                       .blocks = std::vector<XcitChoice>(sizes.at("depth").get<std::size_t>())};
  return VitOptions{.image_size = sizes.at("img_size"),
                    .patch = sizes.at("patch_size"),
                    .dim = sizes.at("embed_dim"),
                    .depth = sizes.at("depth"),
                    .heads = sizes.at("num_heads")};
}

/// What write_references.py computed, and the model that it is of, in its state.
class DinoParity : public testing::TestWithParam<std::string> {
 protected:
  DinoParity()
      : file_{read_safetensors(std::filesystem::path{ABLATE_DINO_PARITY_DIR} /
                               (GetParam() + ".safetensors"))},
        config_(nlohmann::json::parse(file_.metadata.at("config"))),
        model_{backbone_of(config_),
               {.prototypes = config_.at("prototypes"),
                .hidden = config_.at("hidden"),
                .bottleneck = config_.at("bottleneck"),
                .has_fixed_norm = config_.at("fixed_norm")}} {
    load_state(model_, all("sd."));
    model_.train();
  }

  const torch::Tensor& at(const std::string& name) const { return file_.tensors.at(name); }
  double number(const char* name) const { return config_.at(name); }
  std::map<std::string, torch::Tensor> all(const std::string& prefix) const {
    std::map<std::string, torch::Tensor> found;
    for (const auto& [name, tensor] : file_.tensors)
      if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
    return found;
  }

  const TensorFile file_;
  const nlohmann::json config_;
  DinoImpl model_;
};

TEST_P(DinoParity, AStepIsThatOfTheReference) {
  const auto student = model_.student().forward({at("globals"), at("locals")});
  torch::Tensor teacher;
  {
    const torch::NoGradGuard no_grad;
    teacher = model_.teacher().forward({at("globals")});
  }
  EXPECT_LT(relative_error(student, at("student")), 1e-4);
  EXPECT_LT(relative_error(teacher, at("teacher")), 1e-4);
  const auto images = teacher.size(0) / 2, prototypes = teacher.size(1);
  const auto targets =
      teacher_targets(teacher.view({2, images, prototypes}), model_.centre(), number("teacher_temperature"));
  EXPECT_LT(relative_error(targets, at("targets")), 1e-4);
  const auto loss =
      self_distillation_loss(student.view({-1, images, prototypes}), targets, number("student_temperature"));
  EXPECT_LT(relative_error(loss, at("loss")), 1e-4);

  loss.backward();
  const auto expected = all("grad.");
  double largest = 0;
  for (const auto& [name, gradient] : expected)
    largest = std::max(largest, gradient.abs().max().item<double>());
  for (const auto& parameter : model_.named_parameters()) {
    const auto found = expected.find(parameter.key());
    ASSERT_EQ(parameter.value().grad().defined(), found != expected.end()) << parameter.key();
    if (found == expected.end()) continue;  // the teacher's, and lengths that are fixed
    // one that is zero but for rounding, as of a bias before a normalisation, is compared absolutely
    const double scale = std::max(found->second.abs().max().item<double>(), 1e-2 * largest);
    EXPECT_LT(relative_error(parameter.value().grad(), found->second, scale), 1e-4) << parameter.key();
  }

  model_.follow(state_of(model_), number("teacher_momentum"));
  model_.move_centre(teacher.mean(0), number("centre_momentum"));
  for (const auto& [name, tensor] : all("teacher."))
    EXPECT_LT(relative_error(state_of(model_).at("teacher." + name), tensor, 1), 1e-5) << name;
  EXPECT_LT(relative_error(model_.centre(), at("centre")), 1e-5);
}

TEST_P(DinoParity, FeaturesOfTheLastBlocksAreThoseOfTheReference) {
  if (!file_.tensors.contains("features.last")) return;  // an XCiT has those after the last alone
  model_.eval();
  const FeatureChoice last{.blocks = 2, .has_patch_mean = true};
  auto& features = model_.student().features();
  const auto found = features.features(at("globals"), last);
  EXPECT_EQ(found.size(1), features.feature_width(last));
  EXPECT_LT(relative_error(found, at("features.last")), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Backbones, DinoParity, testing::Values("vit", "xcit"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
