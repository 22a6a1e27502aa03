// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/weights/lowered_weights.h"

#include <gtest/gtest.h>

#include <memory>

#include "models/backbones/model_options.h"
#include "models/layers/layers.h"
#include "models/weights/state.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

double error_of(const torch::Tensor& logits, const torch::Tensor& exact) {
  return ((logits.to(torch::kFloat) - exact).norm() / exact.norm()).item<double>();
}

/// A model with the weights of `exact`, rounded to bfloat16; it computes in float32.
std::shared_ptr<Classifier> rounded(const ModelOptions& options, const Classifier& exact) {
  const auto model = build(options);
  load_state(*model, state_of(exact));
  lower_weights(*model, torch::kBFloat16);
  lower_weights(*model, torch::kFloat);
  return model;
}

class LoweredFamily : public testing::TestWithParam<std::pair<std::string, ModelOptions>> {};

// How much 16 bits change a model depends on the model: where batches of few values are normalised, layer
// after layer, on rounding itself (7 % of EfficientNet's logits in training come from rounded weights alone,
// in exact arithmetic), and the order in which a processor adds decides on a part of that. What has to hold
// everywhere is that computing in 16 bits, whose sums are of 32, costs as much again as rounding the weights
// once: measured are 1.1 to 3.3 times it, and 4 is allowed. Sums of 16 bits would cost tens of times.
TEST_P(LoweredFamily, ErrsAsMuchAsItsRoundedWeightsDo) {
  const auto& [name, options] = GetParam();
  for (const bool training : {true, false}) {
    double error = 0, unavoidable = 0;
    for (int draw = 0; draw < 3; ++draw) {
      torch::manual_seed(2 + draw);
      const auto exact = build(options), lowered = build(options), weights = rounded(options, *exact);
      load_state(*lowered, state_of(*exact));
      lower_weights(*lowered, torch::kBFloat16);
      for (const auto& model : {exact, lowered, weights}) model->train(training);
      const torch::NoGradGuard no_grad;
      const auto images = torch::randn({8, 3, 64, 64}), seen = images.to(torch::kBFloat16);
      const auto expected = exact->forward(images);
      error += error_of(lowered->forward(seen), expected);
      unavoidable += error_of(weights->forward(seen.to(torch::kFloat)), expected);
    }
    EXPECT_LT(error, 4 * unavoidable) << name << (training ? " in training" : " in evaluation");
  }
}

TEST_P(LoweredFamily, ComputesIn16BitsThroughoutAndHasFiniteGradients) {
  const auto& [name, options] = GetParam();
  for (const bool training : {true, false}) {
    torch::manual_seed(2);
    const auto lowered = build(options);
    EXPECT_EQ(weight_type(*lowered), torch::kFloat);
    lower_weights(*lowered, torch::kBFloat16);
    EXPECT_EQ(weight_type(*lowered), torch::kBFloat16);
    lowered->train(training);
    const auto logits = lowered->forward(torch::randn({8, 3, 64, 64}).to(torch::kBFloat16));
    EXPECT_EQ(logits.scalar_type(), torch::kBFloat16) << name << " widens on the way";

    logits.to(torch::kFloat).square().sum().backward();
    for (const auto& parameter : lowered->named_parameters()) {
      const auto& gradient = parameter.value().grad();
      if (!gradient.defined()) continue;
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << name << " " << parameter.key();
      EXPECT_EQ(gradient.scalar_type(), parameter.value().scalar_type()) << name << " " << parameter.key();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LoweredFamily, testing::ValuesIn(small_models()), [](const auto& family) {
  std::string name = family.param.first;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST(LoweredWeights, LeaveBatchNormalisationItsStatistics) {
  for (const auto& [name, options] : small_models()) {
    const auto model = build(options);
    lower_weights(*model, torch::kBFloat16);
    for (const auto& part : model->modules())
      if (part->as<BatchNorm2dImpl>()) {
        for (const auto& tensor : state_of(*part))
          EXPECT_NE(tensor.second.scalar_type(), torch::kBFloat16) << name;
      }
  }
}

}  // namespace
}  // namespace abl::models
