// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

#include "worker/trainer/tasks/task.h"

namespace abl::training {

/// A training step as one CUDA graph: recorded once and then started as a whole, where it would be a thousand
/// kernels that the host starts one by one. Everything that changes from step to step must lie in tensors.
class StepGraph {
 public:
  using Inputs = tasks::Work::Inputs;
  using Step = std::function<void(const Inputs& inputs)>;
  virtual ~StepGraph() = default;

  /// One step, on the current stream, which must not be the default one. The first ones run as they are, for
  /// libraries set themselves up; so does a batch of another size. Throws: Error{kFailedPrecondition} for a
  /// step that cannot be recorded, such as one that reads a number back. Thread: one.
  virtual void run(const Inputs& inputs, const Step& step) = 0;
};

/// Null where there are no graphs: on the CPU.
std::unique_ptr<StepGraph> make_step_graph(torch::Device device);

}  // namespace abl::training
