// SPDX-License-Identifier: Apache-2.0
// How to add a probe: what share of its channels a block leaves unused, with its test.
#include <torch/utils.h>

#include "probes/probe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/layers/layers.h"
#include "models/layers/part.h"

namespace abl::probes {
namespace {

/// Hears of every block of the trunk, whatever the model.
class SilentChannels final : public models::Observer {
 public:
  void enter(const torch::nn::Module&) override {}
  void leave(const torch::nn::Module&, const torch::Tensor&) override {}
  void block(const torch::Tensor&, const torch::Tensor& output, std::int64_t channels) override {
    const auto largest = output.movedim(channels, -1).flatten(0, -2).abs().amax(0);  // of each channel
    parts.push_back(largest.lt(1e-3).to(torch::kDouble).mean().item<double>());
  }
  std::vector<double> parts;
};

/// The part of the channels that no token of any image uses, after each block.
Findings silent_channels(const Subject& subject, const protocol::ProbeRequest& request) {
  SilentChannels silent;
  {
    const models::Observation observation{silent};
    subject.model.forward(subject.images(request.number("images")).input);
  }
  if (silent.parts.empty())
    throw Error{Code::kFailedPrecondition, "silent-channels: the model has no blocks"};
  const auto part = torch::tensor(silent.parts, torch::kDouble);
  return {
      .values = {{"last", silent.parts.back()}},
      .arrays = {{"part", {.axes = {{.name = "layer", .places = counted(part.size(0))}}, .values = part}}},
      .pictures = {},
      .notes = {}};
}

/// A model of one's own: two linear blocks, which it tells observers of.
class OwnModelImpl : public models::Classifier {
 public:
  OwnModelImpl() {
    first_ = register_module("first", models::Linear{3, 4});
    second_ = register_module("second", models::Linear{4, 4});
  }
  torch::Tensor forward(const torch::Tensor& images) override {
    const auto tokens = images.flatten(2).transpose(1, 2);
    const auto x = models::tell_block(tokens, first_(tokens));
    return models::tell_block(x, second_(x)).mean(1);
  }

 private:
  models::Linear first_{nullptr}, second_{nullptr};
};

TEST(NewProbe, FindsTheChannelsThatNothingUses) {
  const torch::NoGradGuard no_grad;
  OwnModelImpl model;
  auto parameters = model.named_parameters();
  parameters["first.weight"][1].zero_(), parameters["first.bias"][1].zero_();
  const Subject subject{.model = model, .image_size = 8, .images = [](std::int64_t count) {
                          return Shown{.input = torch::randn({count, 3, 8, 8}), .pixels = {}, .names = {}};
                        }};
  const auto found = silent_channels(subject, {.name = "silent-channels", .settings = {{"images", 5}}});
  EXPECT_EQ(found.arrays.at("part").values.size(0), 2);
  EXPECT_EQ(found.arrays.at("part").values[0].item<double>(), 0.25);
  EXPECT_EQ(found.values.at("last"), 0);
}

}  // namespace
}  // namespace abl::probes
