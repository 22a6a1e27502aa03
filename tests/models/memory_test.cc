// SPDX-License-Identifier: Apache-2.0
#include "models/counting/memory.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/counting/counting_allocator.h"
#include "models/registry.h"

namespace abl::models {
namespace {

const AttentionChoice kMeanShift{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};

using Build = std::function<std::shared_ptr<Classifier>(torch::Device)>;

/// The most bytes that tensors held during a real step on the CPU, of the model and its optimiser on.
std::int64_t measured_peak(const Build& build, const StepOptions& options) {
  CountingAllocator memory{torch::kCPU};
  const auto model = build(torch::kCPU);
  model->train();
  std::vector<torch::Tensor> optimiser;
  for (const auto& parameter : model->parameters())
    for (int state = 0; state < options.optimiser_states; ++state)
      optimiser.push_back(torch::zeros_like(parameter));
  memory.forget_peak();
  const auto images = torch::randn({options.batch, 3, options.image_size, options.image_size});
  const auto classes = torch::zeros({options.batch}, torch::kLong);
  const bool lowered = options.precision == Precision::kBFloat16;
  at::autocast::set_autocast_dtype(torch::kCPU, torch::kBFloat16);
  at::autocast::set_autocast_enabled(torch::kCPU, lowered);
  const auto loss = torch::cross_entropy_loss(model->forward(images), classes);
  at::autocast::set_autocast_enabled(torch::kCPU, false);
  at::autocast::clear_cache();
  loss.backward();
  return memory.peak();
}

void expect_predicted(const char* what, const Build& build, const StepOptions& options) {
  const auto predicted = predict_step_memory(build, options).peak;
  const auto measured = measured_peak(build, options);
  EXPECT_NEAR(static_cast<double>(predicted) / static_cast<double>(measured), 1.0, 0.15) << what;
}

Build simple_vit(const AttentionChoice& choice) {
  return [=](torch::Device device) {
    return build(SimpleVitOptions{.image_size = 64,
                                  .patch = 8,
                                  .classes = 10,
                                  .dim = 96,
                                  .depth = 4,
                                  .heads = 3,
                                  .dim_head = 32,
                                  .mlp_dim = 384,
                                  .attention = std::vector<AttentionChoice>(4, choice)},
                 device);
  };
}

TEST(StepMemory, IsThatOfARealStep) {
  for (const auto precision : {Precision::kFloat, Precision::kBFloat16}) {
    const StepOptions options{.batch = 16, .image_size = 64, .precision = precision};
    expect_predicted("original", simple_vit({}), options);
    expect_predicted("mean shift", simple_vit(kMeanShift), options);
  }
}

/// A small model of each family, 64 × 64 images.
std::vector<std::pair<const char*, ModelOptions>> one_of_each_family() {
  const EmbeddingChoice sne{.widths = {32}, .shared = {false, false}};
  const EmbeddingChoice p_sne{.widths = {32}, .shared = {false, true}};
  const EmbeddingChoice f_sne{.widths = {32}, .shared = {true, true}, .code_size = 8};
  return {{"vit", VitOptions{.image_size = 64, .patch = 8, .classes = 10, .dim = 96, .depth = 3, .heads = 3}},
          {"key-vit", KeyVitOptions{.image_size = 64,
                                    .patch = 8,
                                    .classes = 10,
                                    .dim = 96,
                                    .heads = 3,
                                    .mlp_dim = 384,
                                    .keys = {KeyChoice{.charts = 4}, std::nullopt}}},
          {"swin", SwinOptions{.image_size = 64,
                               .classes = 10,
                               .dim = 48,
                               .depths = {2, 2},
                               .heads = {3, 6},
                               .window = 4,
                               .attention = {QkvChoice{}, QkvChoice{}, kMeanShift, QkvChoice{}}}},
          {"swin-v2", SwinV2Options{.image_size = 64,
                                    .classes = 10,
                                    .dim = 48,
                                    .depths = {2, 2},
                                    .heads = {3, 6},
                                    .window = 4,
                                    .attention = {4, QkvChoice{}}}},
          {"xcit", XcitOptions{.image_size = 64,
                               .patch = 8,
                               .classes = 10,
                               .dim = 64,
                               .heads = 4,
                               .blocks = {{}, {.embedding = f_sne}, {.l2_norm = false}}}},
          {"xcit with other embeddings", XcitOptions{.image_size = 64,
                                                     .patch = 8,
                                                     .classes = 10,
                                                     .dim = 64,
                                                     .heads = 4,
                                                     .blocks = {{.embedding = sne}, {.embedding = p_sne}}}},
          {"resnet", ResNetOptions{.image_size = 64, .classes = 10, .layers = {1, 1, 1, 1}}},
          {"efficientnet", EfficientNetOptions{.image_size = 64, .classes = 10}},
          {"regnet", RegNetOptions{.image_size = 64,
                                   .classes = 10,
                                   .stages = {{.depth = 1, .width = 48, .group_width = 16},
                                              {.depth = 2, .width = 96, .group_width = 16}}}}};
}

TEST(StepMemory, IsThatOfARealStepInEveryFamily) {
  for (const auto precision : {Precision::kFloat, Precision::kBFloat16})
    for (const auto& [name, options] : one_of_each_family())
      expect_predicted(name, [&](torch::Device device) { return build(options, device); },
                       {.batch = 16, .image_size = 64, .precision = precision});
}

TEST(StepMemory, HasItsPartsAndGrowsWithTheBatch) {
  const auto small = predict_step_memory(simple_vit({}), {.batch = 1, .image_size = 64});
  const auto large = predict_step_memory(simple_vit({}), {.batch = 64, .image_size = 64});
  EXPECT_GE(small.peak, small.parameters + small.optimiser + std::max(small.gradients, small.activations));
  EXPECT_LT(small.peak, small.parameters + small.gradients + small.optimiser + 2 * small.activations);
  EXPECT_EQ(small.optimiser, 2 * small.gradients);
  EXPECT_EQ(large.parameters, small.parameters);
  EXPECT_GT(large.activations, 60 * small.activations);
}

/// ViT-S of the MSF paper on square images of so many pixels.
Build vit_s(const AttentionChoice& choice, std::int64_t image_size) {
  return [=](torch::Device device) {
    return build(SimpleVitOptions{.image_size = image_size,
                                  .patch = 16,
                                  .classes = 1000,
                                  .dim = 384,
                                  .depth = 12,
                                  .heads = 6,
                                  .mlp_dim = 1536,
                                  .attention = std::vector<AttentionChoice>(12, choice)},
                 device);
  };
}

TEST(StepMemory, OfMeanShiftIsHardlyMoreThanOfTheOriginalAttention) {
  for (const auto precision : {Precision::kFloat, Precision::kBFloat16}) {
    const StepOptions options{.batch = 8, .image_size = 512, .precision = precision};  // 1,024 tokens
    const auto original = predict_step_memory(vit_s({}, 512), options);
    const auto mean_shift = predict_step_memory(vit_s(kMeanShift, 512), options);
    EXPECT_LT(static_cast<double>(mean_shift.peak) / static_cast<double>(original.peak), 1.15);
  }
}

TEST(StepMemory, OfMeanShiftGrowsLinearlyWithTheTokens) {
  const auto few = predict_step_memory(vit_s(kMeanShift, 256), {.batch = 1, .image_size = 256});     // 256
  const auto many = predict_step_memory(vit_s(kMeanShift, 1024), {.batch = 1, .image_size = 1024});  // 4,096
  EXPECT_LT(static_cast<double>(many.activations) / static_cast<double>(few.activations), 16.5);
}

}  // namespace
}  // namespace abl::models
