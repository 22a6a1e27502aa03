// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/optimiser.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"

namespace abl::trainer {
namespace {

struct Small : torch::nn::Module {
  Small() {
    matrix = register_parameter("matrix", torch::tensor({{1.0f, -2.0f}, {0.5f, 3.0f}}));
    bias = register_parameter("bias", torch::tensor({0.1f, -0.2f}));
    idle = register_parameter("idle", torch::tensor({7.0f}));
  }
  torch::Tensor matrix, bias, idle;
};

training::NamedTensors weights_of(const Small& model) {
  training::NamedTensors weights;
  for (const auto& parameter : model.named_parameters())
    weights.emplace_back(parameter.key(), parameter.value());
  return weights;
}

std::unique_ptr<training::Optimiser> optimiser_of(const Small& model, const config::RecipeConfig& recipe) {
  return training::make_optimiser(model, weights_of(model), recipe);
}

config::RecipeConfig recipe() {
  config::RecipeConfig recipe;
  recipe.weight_decay = 0.05;
  return recipe;
}

/// The update as Loshchilov and Hutter state it, step t, for one number.
double expected(double parameter, double gradient, double& first, double& second, int t, double lr,
                double decay) {
  first = 0.9 * first + 0.1 * gradient;
  second = 0.999 * second + 0.001 * gradient * gradient;
  const double m = first / (1 - std::pow(0.9, t)), v = second / (1 - std::pow(0.999, t));
  return parameter - lr * decay * parameter - lr * m / (std::sqrt(v) + 1e-8);
}

TEST(AdamWTest, DecaysMatricesAndNothingElse) {
  Small model;
  const auto optimiser = optimiser_of(model, recipe());
  double matrix = 1.0, bias = 0.1, m1 = 0, m2 = 0, b1 = 0, b2 = 0;
  for (int t = 1; t <= 3; ++t) {
    (model.matrix.sum() * 2 + model.bias.sum() * 3).backward();
    optimiser->step(0.01);
    matrix = expected(matrix, 2, m1, m2, t, 0.01, 0.05);
    bias = expected(bias, 3, b1, b2, t, 0.01, 0.0);
    EXPECT_NEAR(model.matrix[0][0].item<double>(), matrix, 1e-6) << "step " << t;
    EXPECT_NEAR(model.bias[0].item<double>(), bias, 1e-6) << "step " << t;
  }
  EXPECT_EQ(model.idle.item<float>(), 7.0f) << "a parameter without a gradient stays";
  EXPECT_FALSE(model.matrix.grad().defined()) << "a step clears the gradients";
}

TEST(AdamWTest, GoesOnFromItsStateToTheBit) {
  Small model, other;
  const auto optimiser = optimiser_of(model, recipe()), resumed = optimiser_of(other, recipe());
  const auto step = [](Small& m, training::Optimiser& o) {
    (m.matrix * m.matrix).sum().backward();
    o.step(0.01);
  };
  step(model, *optimiser);
  {
    const torch::NoGradGuard no_grad;
    other.matrix.copy_(model.matrix);
  }
  training::load_optimiser(*resumed, optimiser->state());
  step(model, *optimiser);
  step(other, *resumed);
  EXPECT_TRUE(torch::equal(model.matrix, other.matrix));
}

TEST(AdamWTest, RefusesAStateThatLacksSomething) {
  Small model;
  const auto optimiser = optimiser_of(model, recipe());
  auto state = optimiser->state();
  state.erase("adamw.second.bias");
  EXPECT_THROW(training::load_optimiser(*optimiser, state), Error);
}

TEST(AdamWTest, DecaysEverythingWhereTheRecipeSaysSo) {
  auto all = recipe();
  all.decay = config::Decay::kAll;
  Small model;
  const auto groups = training::parameter_groups(model, weights_of(model), all);
  EXPECT_EQ(groups[0].names.size(), 3u);
  EXPECT_TRUE(groups[1].names.empty());
}

/// As `torch.optim.SGD` documents it, for one number.
double descended(double parameter, double gradient, double& velocity, double lr, double decay,
                 bool nesterov) {
  gradient += decay * parameter;
  velocity = 0.9 * velocity + gradient;
  return parameter - lr * (nesterov ? gradient + 0.9 * velocity : velocity);
}

TEST(SgdTest, IsThatOfPyTorch) {
  for (const bool nesterov : {false, true}) {
    auto sgd = recipe();
    sgd.optimiser = config::Optimiser::kSgd, sgd.nesterov = nesterov;
    Small model;
    const auto optimiser = optimiser_of(model, sgd);
    double matrix = 1.0, bias = 0.1, of_matrix = 0, of_bias = 0;
    for (int t = 1; t <= 3; ++t) {
      (model.matrix.sum() * 2 + model.bias.sum() * 3).backward();
      optimiser->step(0.01);
      matrix = descended(matrix, 2, of_matrix, 0.01, 0.05, nesterov);
      bias = descended(bias, 3, of_bias, 0.01, 0, nesterov);
      EXPECT_NEAR(model.matrix[0][0].item<double>(), matrix, 1e-6) << "step " << t;
      EXPECT_NEAR(model.bias[0].item<double>(), bias, 1e-6) << "step " << t;
    }
    EXPECT_EQ(model.idle.item<float>(), 7.0f);
    EXPECT_TRUE(optimiser->state().contains("sgd.velocity.matrix"));
  }
}

TEST(OptimiserTest, AStepWhoseGradientsOverflowedChangesNothing) {
  for (const char* name : {"adamw", "sgd"}) {
    auto choice = recipe();
    choice.optimiser = *value_named<config::Optimiser>(name);
    Small model;
    const auto optimiser = optimiser_of(model, choice);
    const auto backward = [&](double factor) { (model.matrix * model.matrix * factor).sum().backward(); };
    backward(1);
    optimiser->step(0.01);
    std::map<std::string, torch::Tensor> before;
    for (const auto& [key, tensor] : optimiser->state()) before[key] = tensor.clone();
    const auto matrix = model.matrix.detach().clone();

    backward(INFINITY);
    optimiser->step(torch::tensor(0.01, torch::kFloat64), /*overflow=*/torch::ones({}));
    EXPECT_TRUE(torch::equal(model.matrix, matrix)) << name;
    EXPECT_FALSE(model.matrix.grad().defined()) << name;
    for (const auto& [key, tensor] : optimiser->state())
      EXPECT_TRUE(torch::equal(tensor, before[key])) << key;

    backward(1);
    optimiser->step(torch::tensor(0.01, torch::kFloat64), /*overflow=*/torch::zeros({}));
    EXPECT_FALSE(torch::equal(model.matrix, matrix)) << name;
  }
}

TEST(SgdTest, GoesWithoutMomentum) {
  auto plain = recipe();
  plain.optimiser = config::Optimiser::kSgd, plain.momentum = 0, plain.weight_decay = 0;
  Small model;
  const auto optimiser = optimiser_of(model, plain);
  (model.matrix.sum() * 2).backward();
  optimiser->step(0.25);
  EXPECT_EQ(model.matrix[0][0].item<float>(), 0.5f);
}

TEST(LayerDecayTest, LowersTheLearningRateFromTheHeadDown) {
  for (const auto kind : {config::Optimiser::kSgd, config::Optimiser::kAdamW}) {
    auto by_layer = recipe();
    by_layer.optimiser = kind, by_layer.momentum = 0, by_layer.weight_decay = 0, by_layer.layer_decay = 0.5;
    by_layer.head_lr = 2;
    torch::nn::Module model;
    training::NamedTensors weights;
    // names as those of a ViT: two blocks, the norm goes with the second
    auto patches = model.register_module("patch_embed", std::make_shared<torch::nn::Module>());
    auto blocks = model.register_module("blocks", std::make_shared<torch::nn::Module>());
    auto first = blocks->register_module("0", std::make_shared<torch::nn::Module>());
    auto second = blocks->register_module("1", std::make_shared<torch::nn::Module>());
    auto norm = model.register_module("norm", std::make_shared<torch::nn::Module>());
    auto head = model.register_module("head", std::make_shared<torch::nn::Module>());
    torch::Tensor loss = torch::zeros({});
    for (const auto& part : {patches, first, second, norm, head})
      loss = loss + part->register_parameter("weight", torch::ones({2, 2})).sum();
    for (const auto& parameter : model.named_parameters())
      weights.emplace_back(parameter.key(), parameter.value());
    const auto optimiser = training::make_optimiser(model, weights, by_layer);
    loss.backward();
    optimiser->step(0.1);
    const std::map<std::string, double> factors{{"patch_embed.weight", 0.125},
                                                {"blocks.0.weight", 0.25},
                                                {"blocks.1.weight", 0.5},
                                                {"norm.weight", 0.5},
                                                {"head.weight", 2.0}};
    ASSERT_EQ(weights.size(), factors.size());
    for (const auto& [name, weight] : weights)  // Adam's first step is of size 1, as these gradients are
      EXPECT_NEAR(1 - weight[0][0].item<double>(), 0.1 * factors.at(name), 1e-6) << name;
  }
}

TEST(OptimiserTest, DecaysByWhatItWasToldLast) {
  for (const char* name : {"adamw", "sgd"}) {
    auto choice = recipe();
    choice.optimiser = *value_named<config::Optimiser>(name), choice.momentum = 0;
    Small model;
    const auto optimiser = optimiser_of(model, choice);
    double matrix = 1.0;
    for (const double decay : {0.05, 0.4, 0.0}) {
      if (decay != 0.05) optimiser->decay_by(decay);
      (model.matrix.sum() * 0).backward();  // nothing but what decays
      model.bias.mutable_grad() = torch::zeros({2});
      optimiser->step(0.1);
      matrix *= 1 - 0.1 * decay;
      EXPECT_NEAR(model.matrix[0][0].item<double>(), matrix, 1e-6) << name << decay;
      EXPECT_FLOAT_EQ(model.bias[0].item<float>(), 0.1f) << name << " biases do not";
    }
  }
}

TEST(OptimiserTest, KeepsNoStateOfWhatDoesNotLearn) {
  Small model;
  model.matrix.requires_grad_(false);
  for (const auto kind : {config::Optimiser::kAdamW, config::Optimiser::kSgd}) {
    auto choice = recipe();
    choice.optimiser = kind;
    const auto state = optimiser_of(model, choice)->state();
    EXPECT_FALSE(state.empty());
    for (const auto& [name, tensor] : state) EXPECT_FALSE(name.ends_with(".matrix")) << name;
  }
}

TEST(ClipGradientsTest, BoundsEachNormByItself) {
  Small model;
  (model.matrix.sum() * 3 + model.bias.sum() * 0.1).backward();
  training::clip_each_gradient(weights_of(model), 1.0);
  EXPECT_NEAR(model.matrix.grad().norm().item<double>(), 1.0, 1e-5) << "it was 6";
  EXPECT_FLOAT_EQ(model.bias.grad()[0].item<float>(), 0.1f) << "which is within the bound";
  EXPECT_FALSE(model.idle.grad().defined());
}

TEST(ClipGradientsTest, BoundsTheJointNorm) {
  Small model;
  (model.matrix.sum() * 3 + model.bias.sum() * 4).backward();
  const auto norm = training::gradient_norm(weights_of(model));
  EXPECT_NEAR(norm.item<double>(), std::sqrt(4 * 9 + 2 * 16), 1e-5);
  training::clip_gradients(weights_of(model), norm, 1.0);
  double squares = 0;
  for (const auto& gradient : {model.matrix.grad(), model.bias.grad()})
    squares += gradient.square().sum().item<double>();
  EXPECT_NEAR(std::sqrt(squares), 1.0, 1e-5);
  EXPECT_NEAR(model.bias.grad()[0].item<double>() / model.matrix.grad()[0][0].item<double>(), 4.0 / 3, 1e-5)
      << "the direction stays";
}

}  // namespace
}  // namespace abl::trainer
