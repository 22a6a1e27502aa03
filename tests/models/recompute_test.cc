// SPDX-License-Identifier: Apache-2.0
#include <torch/autograd.h>
#include <torch/utils.h>

#include "models/layers/recompute.h"

#include <gtest/gtest.h>

#include <map>

#include "models/backbones/model_options.h"
#include "models/backbones/vit.h"
#include "models/counting/memory.h"
#include "probes/features.h"
#include "tests/models/autocast.h"
#include "tests/models/operator_memory.h"
#include "tests/models/small_models.h"
#include "tests/models/xcit_of_blocks.h"

namespace abl::models {
namespace {

/// What a training step leaves: its logits, every gradient and buffer, and the generator's state.
std::map<std::string, torch::Tensor> step(const ModelOptions& options, bool lowered = false) {
  torch::manual_seed(1);
  const auto model = build(options);
  const auto images = torch::randn({4, 3, 64, 64});
  torch::Tensor logits;
  {
    const Autocast autocast{lowered};
    logits = model->forward(images);
  }
  torch::cross_entropy_loss(logits, torch::arange(4)).backward();
  std::map<std::string, torch::Tensor> left{{"logits", logits.detach()},
                                            {"generator", at::detail::getDefaultCPUGenerator().get_state()}};
  for (const auto& parameter : model->named_parameters()) left[parameter.key()] = parameter.value().grad();
  for (const auto& buffer : model->named_buffers()) left[buffer.key()] = buffer.value();
  return left;
}

void expect_equal(const std::string& what, const std::map<std::string, torch::Tensor>& found,
                  const std::map<std::string, torch::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (const auto& [name, tensor] : expected) {
    const auto& other = found.at(name);
    ASSERT_EQ(other.defined(), tensor.defined()) << what << ": " << name;
    EXPECT_TRUE(!tensor.defined() || other.equal(tensor)) << what << ": " << name;
  }
}

TEST(Recomputed, TakesTheSameStepToTheBit) {
  for (const auto& [name, options] : small_transformers())
    for (const double rate : {0.0, 0.4}) {
      const auto plain = with_drop_path(options, rate, DropPathRule::kConstant);
      for (const std::int64_t blocks : {1, 2})
        expect_equal(name, step(with_checkpointing(plain, blocks)), step(plain));
    }
}

TEST(Recomputed, TakesTheSameStepToTheBitUnderAutocast) {
  for (const auto& [name, options] : small_transformers()) {
    const auto plain = with_drop_path(options, 0.4, DropPathRule::kConstant);
    expect_equal(name, step(with_checkpointing(plain, 2), true), step(plain, true));
  }
}

TEST(Recomputed, GivesCodesOfAllBlocksTheirGradient) {  // a parameter of the model, not of the blocks
  const EmbeddingChoice f_sne{.widths = {32}, .shared = {true, true}, .code_size = 8};
  const auto options = xcit_of_blocks({{.embedding = f_sne}, {.embedding = f_sne}, {.embedding = f_sne}});
  const auto found = step(with_checkpointing(options, 2));
  ASSERT_TRUE(found.at("codes.code").defined());
  expect_equal("xcit", found, step(options));
}

TEST(Recomputed, IsPlainWithoutGradientsAndForAnObserver) {
  const auto options = small_model("vit");
  torch::manual_seed(2);
  const auto plain = build(options);
  torch::manual_seed(2);
  const auto model = build(with_checkpointing(options, 3));
  const auto images = torch::randn({2, 3, 64, 64});
  {
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(model->forward(images).equal(plain->forward(images)));
  }
  std::map<std::string, torch::Tensor> features{{"blocks.1", {}}};
  {
    const probes::FeatureTap tap{*model, features};
    model->forward(images).sum().backward();
  }
  EXPECT_TRUE(features.at("blocks.1").defined());
}

TEST(Recomputed, FrozenParametersGetNoGradient) {
  const auto model = build(with_checkpointing(small_model("vit"), 3));
  for (auto& parameter : model->named_parameters())
    if (!parameter.key().starts_with("blocks.1") || parameter.key() == "blocks.1.norm1.weight")
      parameter.value().set_requires_grad(false);
  model->forward(torch::randn({2, 3, 64, 64})).sum().backward();
  for (const auto& parameter : model->named_parameters())
    EXPECT_EQ(parameter.value().grad().defined(), parameter.value().requires_grad()) << parameter.key();
}

TEST(Recomputed, ShowsHooksOneGradientOfEachParameter) {
  const auto options = small_model("vit");
  std::vector<torch::Tensor> found;
  for (const std::int64_t blocks : {0, 3}) {
    torch::manual_seed(3);
    const auto model = build(with_checkpointing(options, blocks));
    auto weight = model->named_parameters()["blocks.1.mlp.fc1.weight"];
    int calls = 0;
    weight.register_hook([&](const torch::Tensor& gradient) {
      ++calls;
      return gradient * 2;
    });
    model->forward(torch::randn({2, 3, 64, 64})).sum().backward();
    EXPECT_EQ(calls, 1);
    found.push_back(weight.grad());
  }
  EXPECT_TRUE(found[0].equal(found[1]));
}

TEST(Recomputed, AddsToGradientsThatThereAre) {
  const auto model = build(with_checkpointing(small_model("vit"), 3));
  const auto images = torch::randn({2, 3, 64, 64});
  const auto weight = model->named_parameters()["blocks.1.mlp.fc1.weight"];
  model->forward(images).sum().backward();
  const auto once = weight.grad().clone();
  model->forward(images).sum().backward();
  EXPECT_TRUE(weight.grad().equal(once * 2));
}

TEST(Recomputed, RefusesGradientsOfChosenTensors) {
  const auto model = build(with_checkpointing(small_model("vit"), 3));
  const auto images = torch::randn({2, 3, 64, 64}).requires_grad_();
  EXPECT_THROW(torch::autograd::grad({model->forward(images).sum()}, {images}), c10::Error);
}

TEST(Recomputed, TellsThatAParameterChangedBeforeTheBackwardPass) {
  const auto model = build(with_checkpointing(small_model("vit"), 3));
  const auto loss = model->forward(torch::randn({2, 3, 64, 64})).sum();
  {
    const torch::NoGradGuard no_grad;
    model->named_parameters()["blocks.1.mlp.fc1.weight"].mul_(2);
  }
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(Recomputed, HasNoSecondDerivative) {
  const auto model = build(with_checkpointing(small_model("vit"), 1));
  const auto loss = model->forward(torch::randn({2, 3, 64, 64})).sum();
  EXPECT_THROW(loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true), c10::Error);
}

TEST(Recomputed, RefusesBlocksThatThereAreNot) {
  for (const auto& [name, options] : small_transformers())
    for (const std::int64_t blocks : {-1, 5})
      EXPECT_THROW(build(with_checkpointing(options, blocks), torch::kMeta), c10::ValueError) << name;
  EXPECT_THROW(with_checkpointing(small_model("resnet"), 1), c10::ValueError);
  EXPECT_NO_THROW(with_checkpointing(small_model("resnet"), 0));
}

StepMemory predicted(const ModelOptions& options, Precision precision) {
  return predict_step_memory([&](torch::Device device) { return build(options, device); },
                             {.batch = 16, .image_size = 64, .precision = precision});
}

/// The most bytes that a real step on the CPU holds, parameters and gradients included, and what its largest
/// operator reads and writes.
struct Recomputation {
  std::int64_t peak, largest_operator;
};
Recomputation measured(const ModelOptions& options, Precision precision) {
  const LargestOperator largest;
  CountingAllocator memory{torch::kCPU};
  const auto model = build(options);
  memory.forget_peak();
  const auto images = torch::randn({16, 3, 64, 64});
  const auto classes = torch::zeros({16}, torch::kLong);
  torch::Tensor loss;
  {
    const Autocast lowered{precision == Precision::kAutocast};
    loss = torch::cross_entropy_loss(model->forward(images), classes);
  }
  loss.backward();
  return {memory.peak(), largest.bytes()};
}

TEST(Recomputed, TakesTheMemoryThatIsPredicted) {
  for (const auto precision : {Precision::kFloat, Precision::kAutocast})
    for (const auto& [name, options] : small_transformers()) {
      const auto recomputed = with_checkpointing(options, 2);
      const auto step = predicted(recomputed, precision);
      const auto [peak, largest_operator] = measured(recomputed, precision);
      expect_tensors_predicted(name, step.peak - step.optimiser, peak, largest_operator);
    }
}

TEST(Recomputed, TakesLessMemory) {
  const VitOptions options{.image_size = 64, .patch = 8, .classes = 10, .dim = 96, .depth = 8, .heads = 3};
  for (const auto precision : {Precision::kFloat, Precision::kAutocast}) {
    const auto plain = predicted(options, precision),
               half = predicted(with_checkpointing(options, 4), precision),
               all = predicted(with_checkpointing(options, 8), precision);
    // of a block its input is left, 1 of about 16 tensors as large
    EXPECT_LT(all.activations, plain.activations / 6);
    EXPECT_NEAR(static_cast<double>(half.activations),
                static_cast<double>(plain.activations + all.activations) / 2,
                0.02 * static_cast<double>(plain.activations));
    EXPECT_LT(measured(with_checkpointing(options, 8), precision).peak,
              measured(options, precision).peak / 2);
  }
}

}  // namespace
}  // namespace abl::models
