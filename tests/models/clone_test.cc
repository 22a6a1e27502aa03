// SPDX-License-Identifier: Apache-2.0
// What a program that uses the library does with every model: copies it, and casts it.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <map>
#include <string>

#include "models/backbones/model_options.h"
#include "models/layers/layers.h"
#include "models/weights/lowered_weights.h"
#include "models/weights/state.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

class CopiedFamily : public testing::TestWithParam<std::pair<std::string, ModelOptions>> {
 protected:
  CopiedFamily() { torch::manual_seed(3); }

  const std::shared_ptr<Classifier> model_ = build(GetParam().second);
  const torch::Tensor images_ = torch::randn({3, 3, 64, 64});
};

std::shared_ptr<Classifier> clone_of(const Classifier& model) {
  return std::dynamic_pointer_cast<Classifier>(model.clone());
}

TEST_P(CopiedFamily, GivesTheSameLogitsAndGradients) {
  model_->forward(images_);  // moves running statistics
  const auto copy = clone_of(*model_);
  for (const bool training : {true, false}) {
    std::vector<torch::Tensor> logits, gradients;
    for (const auto& each : {model_, copy}) {
      each->train(training);
      logits.push_back(each->forward(images_));
      gradients.push_back(torch::autograd::grad({logits.back().square().sum()}, {each->parameters()[0]})[0]);
    }
    EXPECT_TRUE(logits[0].equal(logits[1])) << training;
    EXPECT_TRUE(gradients[0].equal(gradients[1])) << training;
  }
}

TEST_P(CopiedFamily, SharesNothingWithItsCopy) {
  const auto copy = clone_of(*model_);
  model_->eval();
  const auto before = model_->forward(images_);
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : copy->parameters()) parameter.fill_(0.1);
    for (auto& buffer : copy->buffers()) buffer.zero_();
  }
  EXPECT_TRUE(model_->forward(images_).equal(before));
}

TEST_P(CopiedFamily, CopiesModesTypesAndFrozenParameters) {
  model_->eval();
  model_->children().front()->train();
  model_->parameters().front().requires_grad_(false);
  lower_weights(*model_, torch::kBFloat16);
  const auto copy = clone_of(*model_);
  const auto parts = model_->modules(), copies = copy->modules();
  ASSERT_EQ(parts.size(), copies.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    EXPECT_EQ(parts[i]->is_training(), copies[i]->is_training()) << parts[i]->name();
  const auto mine = model_->named_parameters();
  for (const auto& parameter : copy->named_parameters()) {
    EXPECT_EQ(parameter.value().requires_grad(), mine[parameter.key()].requires_grad()) << parameter.key();
    EXPECT_EQ(parameter.value().scalar_type(), mine[parameter.key()].scalar_type()) << parameter.key();
  }
}

TEST_P(CopiedFamily, DrawsNoRandomNumberForACopy) {
  const auto before = at::detail::getDefaultCPUGenerator().get_state();
  clone_of(*model_);
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(before));
}

TEST_P(CopiedFamily, IsCopiedWithoutMemory) {
  const auto counted = build(GetParam().second, torch::kMeta);
  const auto copy = clone_of(*counted);
  EXPECT_TRUE(copy->parameters().front().is_meta());
  EXPECT_EQ(copy->parameters().size(), counted->parameters().size());
}

TEST_P(CopiedFamily, ComputesTheSameInDouble) {
  const auto exact = clone_of(*model_);
  exact->to(torch::kDouble);
  for (const auto& parameter : exact->parameters()) EXPECT_EQ(parameter.scalar_type(), torch::kDouble);
  for (const bool training : {true, false}) {
    model_->train(training), exact->train(training);
    const auto logits = exact->forward(images_.to(torch::kDouble));
    EXPECT_EQ(logits.scalar_type(), torch::kDouble);
    const auto expected = model_->forward(images_);
    EXPECT_LT((logits - expected).abs().max().item<double>(),
              1e-4 * (1 + expected.abs().max().item<double>()));
    logits.sum().backward();
    for (const auto& parameter : exact->parameters())
      EXPECT_TRUE(!parameter.grad().defined() || parameter.grad().isfinite().all().item<bool>());
  }
}

TEST_P(CopiedFamily, IsTheSameAfterACastThereAndBack) {
  model_->forward(images_);
  model_->eval();
  const auto before = model_->forward(images_);
  model_->to(torch::kCPU, torch::kDouble);
  model_->to(torch::kFloat);
  EXPECT_TRUE(model_->forward(images_).equal(before));
  for (const auto& part : model_->modules())
    if (const auto* norm = part->as<BatchNorm2dImpl>()) {
      EXPECT_EQ(norm->num_batches_tracked.scalar_type(), torch::kLong);
      EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
    }
}

/// What is computed from the options has no part in rounding: with its weights back a model is what it was.
TEST_P(CopiedFamily, IsTheSameAfterACastTo16BitsAndBackWithItsWeightsGivenBack) {
  model_->forward(images_);
  model_->eval();
  const auto before = model_->forward(images_);
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, tensor] : state_of(*model_)) weights.emplace(name, tensor.clone());
  for (const auto type : {torch::kHalf, torch::kBFloat16}) {
    model_->to(type);
    model_->to(torch::kFloat);
    load_state(*model_, weights);
    EXPECT_TRUE(model_->forward(images_).equal(before)) << type;
    lower_weights(*model_, type);
    lower_weights(*model_, torch::kFloat);
    load_state(*model_, weights);
    EXPECT_TRUE(model_->forward(images_).equal(before)) << type << ", lowered";
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CopiedFamily, testing::ValuesIn(small_models()),
                         [](const auto& parameter) {
                           std::string name = parameter.param.first;
                           std::erase_if(name,
                                         [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

class ModelWithoutCopies : public Classifier {
 public:
  torch::Tensor forward(const torch::Tensor& images) override { return images.flatten(1); }
};

TEST(Classifier, SaysWhatIsMissingForACopy) {
  EXPECT_THROW(ModelWithoutCopies{}.clone(), c10::NotImplementedError);
}

}  // namespace
}  // namespace abl::models
