// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/counting/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/backbones/model_options.h"
#include "models/backbones/simple_vit.h"
#include "models/backbones/vit.h"
#include "models/weights/lowered_weights.h"
#include "tests/models/autocast.h"
#include "tests/models/operator_memory.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

const AttentionChoice kMeanShift{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};

using Build = std::function<std::shared_ptr<Classifier>(torch::Device)>;

std::shared_ptr<Classifier> frozen(const Build& build) {
  auto model = build(torch::kCPU);
  model->eval();
  for (auto& parameter : model->parameters()) parameter.requires_grad_(false);
  return model;
}

/// As a teacher answers: its weights stay in 32 bits.
torch::Tensor answer(Classifier& teacher, const torch::Tensor& images, Precision precision) {
  const torch::NoGradGuard no_grad;
  const Autocast autocast{precision != Precision::kFloat};
  return teacher.forward(images).to(torch::kFloat);
}

struct Measured {
  std::int64_t peak;              ///< the most bytes that were held, of the model and its optimiser on
  std::int64_t largest_operator;  ///< what it reads and writes
};

/// Of a real step on the CPU. `build_teacher`: may be empty.
Measured measured(const Build& build, const StepOptions& options, const Build& build_teacher = {}) {
  const LargestOperator largest;
  CountingAllocator memory{torch::kCPU};
  const auto teacher = build_teacher ? frozen(build_teacher) : nullptr;
  const auto model = build(torch::kCPU);
  model->train();
  const bool lowered = options.precision == Precision::kBFloat16;
  std::vector<torch::Tensor> exact, optimiser, widened;
  for (const auto& parameter : model->parameters()) {
    if (lowered) exact.push_back(parameter.detach().clone());
    for (int state = 0; state < options.optimiser_states; ++state)
      optimiser.push_back(torch::zeros_like(parameter));
  }
  if (lowered) lower_weights(*model, torch::kBFloat16);
  memory.forget_peak();
  const auto images = torch::randn({options.batch, 3, options.image_size, options.image_size});
  const auto classes = torch::zeros({options.batch}, torch::kLong);
  const auto taught = teacher ? answer(*teacher, images, options.precision) : torch::Tensor{};
  torch::Tensor loss;
  {
    const Autocast autocast{options.precision == Precision::kAutocast};
    const auto logits = model->forward(images.to(weight_type(*model)));
    loss = torch::cross_entropy_loss(logits, classes);
    if (teacher) loss = loss + torch::cross_entropy_loss(logits, taught.argmax(1));
  }
  loss.backward();
  for (auto& parameter : model->parameters()) {
    if (!lowered || !parameter.grad().defined()) continue;
    widened.push_back(parameter.grad().to(torch::kFloat));
    parameter.mutable_grad() = torch::Tensor{};
  }
  return {memory.peak(), largest.bytes()};
}

void expect_near(const std::string& what, std::int64_t predicted, const Measured& measured) {
  expect_tensors_predicted(what, predicted, measured.peak, measured.largest_operator, /*surplus=*/0.05);
}

void expect_predicted(const std::string& what, const Build& build, const StepOptions& options) {
  expect_near(what, predict_step_memory(build, options).peak, measured(build, options));
}

/// Of images of 64 pixels and ten classes.
Build simple_vit_of(SimpleVitOptions options) {
  options.image_size = 64, options.classes = 10;
  return [=](torch::Device device) { return build(options, device); };
}

Build simple_vit(const AttentionChoice& choice) {
  return simple_vit_of({.patch = 8,
                        .dim = 96,
                        .depth = 4,
                        .heads = 3,
                        .dim_head = 32,
                        .mlp_dim = 384,
                        .attention = std::vector<AttentionChoice>(4, choice)});
}

TEST(StepMemory, IsThatOfARealStep) {
  for (const auto precision : {Precision::kFloat, Precision::kAutocast, Precision::kBFloat16}) {
    const StepOptions options{.batch = 16, .image_size = 64, .precision = precision};
    expect_predicted("original", simple_vit({}), options);
    expect_predicted("mean shift", simple_vit(kMeanShift), options);
  }
}

TEST(StepMemory, IsThatOfARealStepInEveryFamily) {
  for (const auto precision : {Precision::kFloat, Precision::kAutocast, Precision::kBFloat16})
    for (const auto& [name, options] : small_models())
      expect_predicted(name, [&](torch::Device device) { return build(options, device); },
                       {.batch = 16, .image_size = 64, .precision = precision});
}

TEST(ForwardMemory, IsThatOfARealAnswerInEveryFamily) {
  for (const auto precision : {Precision::kFloat, Precision::kAutocast})
    for (const auto& [name, model] : small_models()) {
      const Build build_it = [&](torch::Device device) { return build(model, device); };
      const auto predicted =
          predict_forward_memory(build_it, {.batch = 16, .image_size = 64, .precision = precision});
      const LargestOperator largest;
      CountingAllocator memory{torch::kCPU};
      const auto teacher = frozen(build_it);
      EXPECT_EQ(predicted.weights, memory.held()) << name;
      memory.forget_peak();
      answer(*teacher, torch::randn({16, 3, 64, 64}), precision);
      expect_near(name, predicted.weights + predicted.peak, {memory.peak(), largest.bytes()});
    }
}

TEST(StepMemory, WithATeacherIsThatOfARealStep) {
  const Build teacher = [](torch::Device device) {
    return build(VitOptions{.image_size = 64, .patch = 8, .classes = 10, .dim = 96, .depth = 3, .heads = 3},
                 device);
  };
  for (const auto precision : {Precision::kFloat, Precision::kAutocast, Precision::kBFloat16}) {
    const StepOptions options{.batch = 16, .image_size = 64, .precision = precision};
    const auto student = simple_vit({});
    expect_near(
        "student",
        peak_with_teacher(predict_step_memory(student, options), predict_forward_memory(teacher, options)),
        measured(student, options, teacher));
  }
}

TEST(StepMemory, IsTheTeachersWhereThatHoldsMoreThanTheStudentsStep) {
  const StepOptions options{.batch = 16, .image_size = 64};
  const Build student = simple_vit_of({.patch = 32,
                                       .dim = 16,
                                       .depth = 1,
                                       .heads = 1,
                                       .dim_head = 16,
                                       .mlp_dim = 16,
                                       .attention = {AttentionChoice{}}});
  const auto step = predict_step_memory(student, options);
  const auto teacher = predict_forward_memory(simple_vit({}), options);
  ASSERT_GT(teacher.peak, step.peak);
  expect_near("teacher", peak_with_teacher(step, teacher), measured(student, options, simple_vit({})));
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
Build build_vit_s(const AttentionChoice& choice, std::int64_t image_size) {
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
  for (const auto precision : {Precision::kFloat, Precision::kAutocast, Precision::kBFloat16}) {
    const StepOptions options{.batch = 8, .image_size = 512, .precision = precision};  // 1,024 tokens
    const auto original = predict_step_memory(build_vit_s({}, 512), options);
    const auto mean_shift = predict_step_memory(build_vit_s(kMeanShift, 512), options);
    EXPECT_LT(static_cast<double>(mean_shift.peak) / static_cast<double>(original.peak), 1.15);
  }
}

TEST(StepMemory, OfARealMeanShiftStepAt1024TokensIsHardlyMoreThanOfTheOriginalAttention) {
  const StepOptions options{.batch = 1, .image_size = 512};
  const auto original = measured(build_vit_s({}, 512), options).peak;
  const auto mean_shift = measured(build_vit_s(kMeanShift, 512), options).peak;
  EXPECT_LT(static_cast<double>(mean_shift) / static_cast<double>(original), 1.15);
}

TEST(StepMemory, OfMeanShiftGrowsLinearlyWithTheTokens) {
  const auto few = predict_step_memory(build_vit_s(kMeanShift, 256), {.batch = 1, .image_size = 256});  // 256
  const auto many =
      predict_step_memory(build_vit_s(kMeanShift, 1024), {.batch = 1, .image_size = 1024});  // 4,096
  EXPECT_LT(static_cast<double>(many.activations) / static_cast<double>(few.activations), 16.5);
}

}  // namespace
}  // namespace abl::models
