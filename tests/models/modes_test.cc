// SPDX-License-Identifier: Apache-2.0
// Evaluation leaves nothing behind: what a model computes in training does not depend on what it was asked
// before.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <functional>
#include <map>
#include <thread>

#include "models/backbones/model_options.h"
#include "models/counting/memory.h"
#include "tests/models/autocast.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

using Left = std::map<std::string, torch::Tensor>;

void evaluate(Classifier& model, bool lowered) {
  const torch::InferenceMode inference;  // as the trainer does
  const Autocast autocast{lowered};
  const bool training = model.is_training();
  model.eval();
  model.forward(torch::ones({2, 3, 64, 64}));
  model.train(training);
}

void train(Classifier& model, bool lowered) {
  model.train();
  torch::Tensor logits;
  {
    const Autocast autocast{lowered};
    logits = model.forward(torch::randn({4, 3, 64, 64}));
  }
  torch::cross_entropy_loss(logits, torch::arange(4)).backward();
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters())
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.01);
}

/// What a model holds after `steps`: each trains, or evaluates where it is false.
Left after(const ModelOptions& options, const std::vector<bool>& steps, bool lowered) {
  torch::manual_seed(1);
  const auto model = build(options);
  for (const bool trains : steps)
    if (trains)
      train(*model, lowered);
    else
      evaluate(*model, lowered);
  Left left;
  for (const auto& parameter : model->named_parameters()) {
    left[parameter.key()] = parameter.value().detach();
    left["grad of " + parameter.key()] = parameter.value().grad();
  }
  for (const auto& buffer : model->named_buffers()) left[buffer.key()] = buffer.value();
  return left;
}

void expect_equal(const Left& found, const Left& expected) {
  for (const auto& [name, tensor] : expected) {
    const auto& other = found.at(name);
    ASSERT_EQ(other.defined(), tensor.defined()) << name;
    EXPECT_TRUE(!tensor.defined() || other.equal(tensor)) << name;
  }
}

class EvaluatedFamily : public testing::TestWithParam<std::pair<std::string, ModelOptions>> {};

TEST_P(EvaluatedFamily, TrainsAsIfItHadNotBeen) {
  for (const bool lowered : {false, true})
    expect_equal(after(GetParam().second, {false, true}, lowered), after(GetParam().second, {true}, lowered));
}

TEST_P(EvaluatedFamily, TrainsOnAsIfItHadNotBeen) {
  for (const bool lowered : {false, true})
    expect_equal(after(GetParam().second, {true, false, true}, lowered),
                 after(GetParam().second, {true, true}, lowered));
}

TEST_P(EvaluatedFamily, KeepsNoMemory) {
  CountingAllocator memory{torch::kCPU};
  const auto model = build(GetParam().second);
  const auto before = memory.held();
  evaluate(*model, false);
  EXPECT_EQ(memory.held(), before);
}

TEST_P(EvaluatedFamily, AnswersTwoThreadsAtOnce) {
  torch::manual_seed(2);
  const auto model = build(GetParam().second);
  model->eval();
  const auto images = torch::randn({2, 3, 64, 64});
  const auto answer = [&] {
    const torch::NoGradGuard no_grad;
    return model->forward(images);
  };
  const auto expected = answer();
  torch::Tensor answers[2];
  {
    std::vector<std::jthread> threads;
    for (auto& mine : answers) threads.emplace_back([&] { mine = answer(); });
  }
  for (const auto& mine : answers) EXPECT_LT((mine - expected).abs().max().item<double>(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Families, EvaluatedFamily, testing::ValuesIn(small_models()),
                         [](const auto& parameter) {
                           std::string name = parameter.param.first;
                           std::erase_if(name,
                                         [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

TEST(EvaluatedFamilies, RefuseImagesOfASizeThatTheyAreNotMadeFor) {  // as many patches, or fewer
  for (const auto& name : {"simple-vit", "vit", "key-vit", "swin", "swin-v2"}) {
    const auto model = build(small_model(name));
    for (const auto& [rows, columns] : {std::pair{32, 128}, {32, 32}})
      EXPECT_THROW(model->forward(torch::zeros({1, 3, rows, columns})), c10::ValueError) << name;
  }
}

TEST(EvaluatedXcit, OfManySizesKeepsNothing) {  // positions of other sizes are computed
  CountingAllocator memory{torch::kCPU};
  const auto model = build(small_model("xcit"));
  model->eval();
  const auto before = memory.held();
  const torch::InferenceMode inference;
  for (const std::int64_t side : {32, 64, 72, 96}) model->forward(torch::zeros({1, 3, side, 64}));
  EXPECT_EQ(memory.held(), before);
}

}  // namespace
}  // namespace abl::models
