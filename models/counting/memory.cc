// SPDX-License-Identifier: Apache-2.0
#include "models/counting/memory.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

#include "models/counting/meta_autocast.h"
#include "models/counting/meta_kernels.h"
#include "models/weights/lowered_weights.h"

namespace abl::models {
namespace {

/// What is allocated may outlive the allocator, so the sums do not live in it.
struct Sums {
  std::atomic<std::int64_t> held = 0;
  std::atomic<std::int64_t> peak = 0;
};
Sums& sums(c10::DeviceType device) {
  static Sums meta, other;
  return device == c10::DeviceType::Meta ? meta : other;
}

void add(Sums& sums, std::int64_t bytes) {
  const auto held = sums.held += bytes;
  auto peak = sums.peak.load();
  while (peak < held && !sums.peak.compare_exchange_weak(peak, held)) {
  }
}

/// Stands before the memory that is handed out: PyTorch gives back the address alone.
struct alignas(64) Head {
  Sums* sums;
  std::int64_t bytes;
};

void release(void* memory) {
  auto* const head = static_cast<Head*>(memory) - 1;
  head->sums->held -= head->bytes;
  std::free(head);
}

}  // namespace

CountingAllocator::CountingAllocator(c10::DeviceType device)
    : device_{device}, before_{c10::GetAllocator(device)} {
  sums(device_).held = 0;
  sums(device_).peak = 0;
  c10::SetAllocator(device_, this, std::numeric_limits<std::uint8_t>::max());
}

CountingAllocator::~CountingAllocator() {
  c10::SetAllocator(device_, before_, std::numeric_limits<std::uint8_t>::max());
}

c10::DataPtr CountingAllocator::allocate(std::size_t bytes) {
  const bool meta = device_ == c10::DeviceType::Meta;
  const auto size = meta ? 0 : (bytes + alignof(Head) - 1) / alignof(Head) * alignof(Head);
  void* const block = std::aligned_alloc(alignof(Head), sizeof(Head) + size);
  if (!block) throw std::bad_alloc{};
  auto* const head = new (block) Head{&sums(device_), static_cast<std::int64_t>(bytes)};
  add(*head->sums, head->bytes);
  void* const memory = head + 1;
  return {meta ? nullptr : memory, memory, &release, device_};
}

c10::DeleterFnPtr CountingAllocator::raw_deleter() const { return &release; }

void CountingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

std::int64_t CountingAllocator::held() const { return sums(device_).held; }
std::int64_t CountingAllocator::peak() const { return sums(device_).peak; }
void CountingAllocator::forget_peak() { sums(device_).peak = sums(device_).held.load(); }

StepMemory predict_step_memory(const Network& network, const StepOptions& options) {
  use_meta_kernels();
  CountingAllocator memory{torch::kMeta};
  StepMemory step;
  const auto model = network.build(torch::kMeta);
  model->train();
  const bool lowered = options.precision == Precision::kBFloat16;
  std::vector<torch::Tensor> exact, optimiser, widened;
  for (const auto& parameter : model->parameters())
    exact.push_back(lowered ? parameter.detach().clone().requires_grad_(parameter.requires_grad())
                            : parameter);
  if (lowered) lower_weights(*model, torch::kBFloat16);
  step.parameters = memory.held();

  for (const auto& weight : exact) {
    if (!weight.requires_grad()) continue;
    step.gradients += static_cast<std::int64_t>(weight.nbytes());
    for (int state = 0; state < options.optimiser_states; ++state)
      optimiser.push_back(torch::empty_like(weight));
  }
  step.optimiser = memory.held() - step.parameters;

  memory.forget_peak();
  const auto images = torch::empty({options.batch, 3, options.image_size, options.image_size}, torch::kMeta);
  torch::Tensor loss;
  {
    const MetaAutocast autocast{options.precision == Precision::kAutocast};
    loss = network.loss(*model, images.to(weight_type(*model)));
  }
  step.activations = memory.held() - step.parameters - step.optimiser;
  if (loss.requires_grad()) loss.backward();
  for (auto& parameter : model->parameters()) {
    if (!lowered || !parameter.grad().defined()) continue;
    widened.push_back(parameter.grad().to(torch::kFloat));
    parameter.mutable_grad() = torch::Tensor{};
  }
  step.peak = memory.peak();
  return step;
}

ForwardMemory predict_forward_memory(const Network& network, const StepOptions& options) {
  use_meta_kernels();
  CountingAllocator memory{torch::kMeta};
  const torch::NoGradGuard no_grad;
  const auto model = network.build(torch::kMeta);
  model->eval();
  for (auto& parameter : model->parameters()) parameter.requires_grad_(false);
  ForwardMemory forward{.weights = memory.held()};
  memory.forget_peak();
  const auto images = torch::empty({options.batch, 3, options.image_size, options.image_size}, torch::kMeta);
  const MetaAutocast autocast{options.precision != Precision::kFloat};
  const auto answer = network.answer(*model, images).to(torch::kFloat);
  forward.peak = memory.peak() - forward.weights;
  return forward;
}

StepMemory predict_step_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                               const StepOptions& options) {
  return predict_step_memory(classifier(build), options);
}

ForwardMemory predict_forward_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                                     const StepOptions& options) {
  return predict_forward_memory(classifier(build), options);
}

std::int64_t peak_with_teacher(const StepMemory& step, const ForwardMemory& teacher) {
  return teacher.weights + std::max(step.peak, step.parameters + step.optimiser + teacher.peak);
}

}  // namespace abl::models
