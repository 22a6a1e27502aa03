// SPDX-License-Identifier: Apache-2.0
// How to add a part to models/: a gate on the channels of a token, with its test.
#include <gtest/gtest.h>

#include "models/backbones/classifier.h"
#include "models/counting/counter.h"
#include "models/layers/layers.h"

namespace abl::models {
namespace {

/// A number between 0 and 1 for each channel of a token.
///   y = x ⊙ sigmoid(W₂ relu(W₁ x))
/// Parameters: `fc1`, `fc2`. Shape: x [B, N, dim] -> the same.
class ChannelGateImpl : public torch::nn::Module {
 public:
  ChannelGateImpl(std::int64_t dim, std::int64_t hidden, torch::Device device = torch::kCPU) {
    TORCH_CHECK_VALUE(dim > 0 && hidden > 0, "a gate of width ", dim, " by way of ", hidden,
                      "; both must be positive");
    fc1_ = register_module("fc1", Linear{dim, hidden, device});
    fc2_ = register_module("fc2", Linear{hidden, dim, device});
  }
  torch::Tensor forward(const torch::Tensor& x) { return x * torch::sigmoid(fc2_(torch::relu(fc1_(x)))); }

 private:
  Linear fc1_{nullptr}, fc2_{nullptr};
};
using ChannelGate = Part<ChannelGateImpl>;

/// A model around it, which is all that counting and training want.
class GatedMeanImpl : public Classifier {
 public:
  GatedMeanImpl(std::int64_t classes, torch::Device device = torch::kCPU) {
    gate_ = register_module("gate", ChannelGate{3, 8, device});
    head_ = register_module("head", Linear{3, classes, device});
  }
  torch::Tensor forward(const torch::Tensor& images) override {
    const auto tokens = images.flatten(2).transpose(1, 2);  // [B, pixels, 3]
    return head_(add_residual(tokens, gate_(tokens)).mean(1));
  }

 private:
  ChannelGate gate_{nullptr};
  Linear head_{nullptr};
};

TEST(NewPart, LetsThroughAPartOfEachChannel) {
  ChannelGate gate{6, 4};
  const auto x = torch::randn({2, 5, 6});
  const auto y = gate(x);
  EXPECT_EQ(y.sizes(), x.sizes());
  EXPECT_TRUE((y / x).gt(0).all().item<bool>());
  EXPECT_TRUE((y / x).lt(1).all().item<bool>());
  EXPECT_THROW(ChannelGate(0, 4), c10::ValueError);
}

TEST(NewPart, IsCountedByRunningItOnTheMetaDevice) {
  const auto model = std::make_shared<GatedMeanImpl>(10, torch::kMeta);
  const auto parts = count_parts(*model, /*image_size=*/4);
  const auto& gate = parts.at(1);
  EXPECT_EQ(gate.name, "gate");
  EXPECT_EQ(gate.type, "ChannelGate");
  EXPECT_EQ(gate.params_all, 3 * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(gate.work.macs, 16 * 2 * 3 * 8);
  EXPECT_EQ(gate.work.relu, 16 * 8);
  EXPECT_EQ(parts.front().work.residual, 16 * 3);
}

TEST(NewPart, GetsAGradientInEveryParameter) {
  GatedMeanImpl model{10};
  torch::cross_entropy_loss(model.forward(torch::randn({2, 3, 4, 4})), torch::tensor({1, 2})).backward();
  for (const auto& parameter : model.named_parameters())
    EXPECT_TRUE(parameter.value().grad().abs().sum().item<double>() > 0) << parameter.key();
}

}  // namespace
}  // namespace abl::models
