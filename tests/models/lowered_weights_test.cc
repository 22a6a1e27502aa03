// SPDX-License-Identifier: Apache-2.0
#include "models/lowered_weights.h"

#include <gtest/gtest.h>

#include "models/layers.h"
#include "models/registry.h"
#include "models/state.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

double relative_error(const torch::Tensor& rounded, const torch::Tensor& exact) {
  return ((rounded.to(torch::kFloat) - exact).norm() / exact.norm()).item<double>();
}

class LoweredFamily : public testing::TestWithParam<std::pair<std::string, ModelOptions>> {};

TEST_P(LoweredFamily, ComputesNearlyWhatItComputesExactly) {
  const auto& [name, options] = GetParam();
  for (const bool training : {true, false}) {
    torch::manual_seed(2);
    const auto exact = build(options), lowered = build(options);
    load_state(*lowered, state_of(*exact));
    lower_weights(*lowered, torch::kBFloat16);
    EXPECT_EQ(weight_type(*exact), torch::kFloat);
    EXPECT_EQ(weight_type(*lowered), torch::kBFloat16);
    exact->train(training), lowered->train(training);
    const auto images = torch::randn({8, 3, 64, 64});
    const auto expected = exact->forward(images), logits = lowered->forward(images.to(torch::kBFloat16));
    EXPECT_EQ(logits.scalar_type(), torch::kBFloat16) << name << " widens on the way";
    EXPECT_LT(relative_error(logits, expected), 0.1) << (training ? "training" : "evaluation");

    logits.to(torch::kFloat).square().sum().backward();
    for (const auto& parameter : lowered->named_parameters()) {
      const auto& gradient = parameter.value().grad();
      if (!gradient.defined()) continue;
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << name << " " << parameter.key();
      EXPECT_EQ(gradient.scalar_type(), parameter.value().scalar_type()) << name << " " << parameter.key();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LoweredFamily, testing::ValuesIn(small_models()), [](const auto& info) {
  std::string name = info.param.first;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST(LoweredWeights, LeaveBatchNormalisationItsStatistics) {
  for (const auto& [name, options] : small_models()) {
    const auto model = build(options);
    lower_weights(*model, torch::kBFloat16);
    for (const auto& part : model->modules())
      if (part->as<BatchNorm2dImpl>())
        for (const auto& tensor : state_of(*part))
          EXPECT_NE(tensor.second.scalar_type(), torch::kBFloat16) << name;
  }
}

}  // namespace
}  // namespace abl::models
