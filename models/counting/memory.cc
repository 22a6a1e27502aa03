// SPDX-License-Identifier: Apache-2.0
#include "models/counting/memory.h"

#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "models/counting/counting_allocator.h"
#include "models/counting/meta_autocast.h"
#include "models/counting/meta_kernels.h"
#include "models/lowered_weights.h"

namespace abl::models {

StepMemory predict_step_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                               const StepOptions& options) {
  use_meta_kernels();
  CountingAllocator memory{torch::kMeta};
  StepMemory step;
  const auto model = build(torch::kMeta);
  model->train();
  const bool lowered = options.precision == Precision::kBFloat16;
  std::vector<torch::Tensor> exact, optimiser, widened;
  for (const auto& parameter : model->parameters())
    exact.push_back(lowered ? parameter.detach().clone() : parameter);
  if (lowered) lower_weights(*model, torch::kBFloat16);
  step.parameters = memory.held();

  for (const auto& weight : exact) {
    step.gradients += static_cast<std::int64_t>(weight.nbytes());
    for (int state = 0; state < options.optimiser_states; ++state)
      optimiser.push_back(torch::empty_like(weight));
  }
  step.optimiser = memory.held() - step.parameters;

  memory.forget_peak();
  const auto images = torch::empty({options.batch, 3, options.image_size, options.image_size}, torch::kMeta);
  const auto classes = torch::empty({options.batch}, torch::dtype(torch::kLong).device(torch::kMeta));
  torch::Tensor loss;
  {
    const MetaAutocast autocast{options.precision == Precision::kAutocast};
    loss = torch::cross_entropy_loss(model->forward(images.to(weight_type(*model))), classes);
  }
  step.activations = memory.held() - step.parameters - step.optimiser;
  loss.backward();
  for (auto& parameter : model->parameters()) {
    if (!lowered || !parameter.grad().defined()) continue;
    widened.push_back(parameter.grad().to(torch::kFloat));
    parameter.mutable_grad() = torch::Tensor{};
  }
  step.peak = memory.peak();
  return step;
}

ForwardMemory predict_forward_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                                     const StepOptions& options) {
  use_meta_kernels();
  CountingAllocator memory{torch::kMeta};
  const torch::NoGradGuard no_grad;
  const auto model = build(torch::kMeta);
  model->eval();
  for (auto& parameter : model->parameters()) parameter.requires_grad_(false);
  ForwardMemory forward{.weights = memory.held()};
  memory.forget_peak();
  const auto images = torch::empty({options.batch, 3, options.image_size, options.image_size}, torch::kMeta);
  const MetaAutocast autocast{options.precision != Precision::kFloat};
  const auto logits = model->forward(images).to(torch::kFloat);
  forward.peak = memory.peak() - forward.weights;
  return forward;
}

std::int64_t peak_with_teacher(const StepMemory& step, const ForwardMemory& teacher) {
  return teacher.weights + std::max(step.peak, step.parameters + step.optimiser + teacher.peak);
}

}  // namespace abl::models
