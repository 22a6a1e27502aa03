// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/step_graph.h"

#ifdef ABLATE_CUDA
#include <ATen/cuda/CUDAGraph.h>

#include <algorithm>

#include "base/error.h"
#endif

namespace abl::training {

#ifdef ABLATE_CUDA
namespace {

constexpr int kStepsBefore = 3;  // cuBLAS, cuDNN and the choice of kernels are set up in the first ones

bool alike(const torch::Tensor& a, const torch::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || a.sizes() == b.sizes());
}

void copy(const torch::Tensor& from, torch::Tensor& to) {
  if (from.defined()) to.copy_(from, /*non_blocking=*/true);
}

class CudaStepGraph final : public StepGraph {
 public:
  void run(const Inputs& inputs, const Step& step) override {
    const bool as_it_is = taken_++ < kStepsBefore;
    if (as_it_is || (graph_ && !std::ranges::equal(inputs, inputs_, alike))) return step(inputs);
    if (!graph_) record(inputs, step);
    for (std::size_t i = 0; i < inputs.size(); ++i) copy(inputs[i], inputs_[i]);
    graph_->replay();
  }

 private:
  void record(const Inputs& inputs, const Step& step) {
    inputs_.clear();
    for (const auto& input : inputs)
      inputs_.push_back(input.defined() ? torch::empty_like(input) : torch::Tensor{});
    c10::cuda::CUDACachingAllocator::emptyCache();  // the graph has memory of its own
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    try {
      // of this thread alone: the loader's may ask for pinned memory meanwhile
      graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      step(inputs_);
      graph->capture_end();
    } catch (const c10::OutOfMemoryError&) {
      abandon(*graph);
      throw;
    } catch (const c10::Error& error) {
      abandon(*graph);
      throw Error{
          Code::kFailedPrecondition,
          std::string{"a CUDA graph of the step could not be recorded; train without --cuda-graph: "} +
              error.what_without_backtrace()};
    }
    graph_ = std::move(graph);
  }

  /// The stream takes no other work while it is recorded, not even that pinned memory is free again.
  static void abandon(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {  // it says again that nothing could be recorded
    }
  }

  int taken_ = 0;
  Inputs inputs_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace
#endif

std::unique_ptr<StepGraph> make_step_graph(torch::Device device) {
#ifdef ABLATE_CUDA
  if (device.is_cuda()) return std::make_unique<CudaStepGraph>();
#endif
  static_cast<void>(device);
  return nullptr;
}

}  // namespace abl::training
