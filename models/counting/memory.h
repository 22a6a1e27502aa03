// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "models/backbones/classifier.h"
#include "models/counting/network.h"

namespace abl::models {

/// Adds up what is allocated on a device while it lives: the bytes that are held now, and the most that were
/// held at once. On the meta device no memory is behind a tensor, and only its bytes are added up; on the CPU
/// the memory is `std::aligned_alloc`'s, with a head before each block that knows its size.
/// What was allocated may outlive it.
/// Thread: any, for the sums; one of them at a time in a process and device.
class CountingAllocator final : public c10::Allocator {
 public:
  /// `device`: the meta device or the CPU.
  explicit CountingAllocator(c10::DeviceType device);
  ~CountingAllocator() override;
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

  std::int64_t held() const;
  std::int64_t peak() const;
  /// From here on, the peak is that of what follows.
  void forget_peak();

 private:
  const c10::DeviceType device_;
  c10::Allocator* const before_;
};

/// How the arithmetic of a training step is done.
enum class Precision {
  kFloat,     ///< everything in 32 bits
  kAutocast,  ///< matrix products in 16 bits from 32-bit parameters
  kBFloat16,  ///< weights, activations and gradients in bfloat16; the optimiser moves 32-bit copies of the
              ///< weights
};

struct StepOptions {
  std::int64_t batch = 1;
  std::int64_t image_size = 0;
  Precision precision = Precision::kFloat;
  int optimiser_states =
      2;  ///< tensors that the optimiser keeps for each parameter: AdamW 2, SGD with momentum 1
};

/// Bytes that a training step needs, without the program, its libraries and images that wait.
struct StepMemory {
  std::int64_t parameters = 0;  ///< and buffers; in bfloat16 also the 32-bit copies
  std::int64_t gradients = 0;
  std::int64_t optimiser = 0;
  std::int64_t activations = 0;  ///< what the forward pass leaves for the backward pass
  /// The most that is held at once: less than the sum, for gradients come as activations go.
  std::int64_t peak = 0;
};

/// Predicts the memory of a training step by taking one on the meta device, with the real module and its real
/// backward pass, and adding up what would be allocated. Takes milliseconds, whatever the batch.
/// Thread: one at a time in a process.
StepMemory predict_step_memory(const Network& network, const StepOptions& options);
/// The same of a classifier that `build` builds on the device that it is given.
StepMemory predict_step_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                               const StepOptions& options);

/// Bytes that a model needs which only answers: a frozen teacher.
struct ForwardMemory {
  std::int64_t weights = 0;  ///< and buffers
  std::int64_t peak = 0;     ///< the most that a forward pass holds beside them, its images included
};

/// Predicts the same for a forward pass in evaluation mode, without gradients. `options`: of them batch,
/// image size and precision; the weights stay in 32 bits, as a teacher's do, and are cast where products are
/// in 16. Thread: as above.
ForwardMemory predict_forward_memory(const Network& network, const StepOptions& options);
ForwardMemory predict_forward_memory(const std::function<std::shared_ptr<Classifier>(torch::Device)>& build,
                                     const StepOptions& options);

/// The peak of a step that begins with the teacher's answer: its weights stay, its forward pass ends before
/// the student's begins.
std::int64_t peak_with_teacher(const StepMemory& step, const ForwardMemory& teacher);

}  // namespace abl::models
