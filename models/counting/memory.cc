// SPDX-License-Identifier: Apache-2.0
#include "models/counting/memory.h"

#include <torch/torch.h>

#include <vector>

#include "models/counting/counting_allocator.h"
#include "models/counting/meta_autocast.h"
#include "models/counting/meta_kernels.h"

namespace abl::models {

StepMemory predict_step_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                               const StepOptions& options) {
  use_meta_kernels();
  CountingAllocator memory{torch::kMeta};
  StepMemory step;
  const auto model = build(torch::kMeta);
  model->train();
  step.parameters = memory.held();

  std::vector<torch::Tensor> optimiser;
  for (const auto& parameter : model->parameters()) {
    step.gradients += static_cast<std::int64_t>(parameter.nbytes());
    for (int state = 0; state < options.optimiser_states; ++state)
      optimiser.push_back(torch::empty_like(parameter));
  }
  step.optimiser = memory.held() - step.parameters;

  memory.forget_peak();
  const auto images = torch::empty({options.batch, 3, options.image_size, options.image_size}, torch::kMeta);
  const auto classes = torch::empty({options.batch}, torch::dtype(torch::kLong).device(torch::kMeta));
  torch::Tensor loss;
  {
    const MetaAutocast lowered{options.precision == Precision::kBFloat16};
    loss = torch::cross_entropy_loss(model->forward(images), classes);
  }
  step.activations = memory.held() - step.parameters - step.optimiser;
  loss.backward();
  step.peak = memory.peak();
  return step;
}

}  // namespace abl::models
