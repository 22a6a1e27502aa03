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
  void run(const torch::Tensor& images, const tasks::Targets& targets, const Step& step) override {
    const bool as_it_is = taken_++ < kStepsBefore;
    if (as_it_is || (graph_ && !fits(images, targets))) return step(images, targets);
    if (!graph_) record(images, targets, step);
    copy(images, images_);
    for (const auto member : kTensors) copy(targets.*member, targets_.*member);
    graph_->replay();
  }

 private:
  static constexpr torch::Tensor tasks::Targets::*kTensors[] = {
      &tasks::Targets::labels, &tasks::Targets::other_labels, &tasks::Targets::shares,
      &tasks::Targets::teacher};

  bool fits(const torch::Tensor& images, const tasks::Targets& targets) const {
    return alike(images, images_) && std::ranges::all_of(kTensors, [&](auto member) {
             return alike(targets.*member, targets_.*member);
           });
  }

  void record(const torch::Tensor& images, const tasks::Targets& targets, const Step& step) {
    images_ = torch::empty_like(images);
    for (const auto member : kTensors)
      if ((targets.*member).defined()) targets_.*member = torch::empty_like(targets.*member);
    c10::cuda::CUDACachingAllocator::emptyCache();  // the graph has memory of its own
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    try {
      // of this thread alone: the loader's may ask for pinned memory meanwhile
      graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      step(images_, targets_);
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
  torch::Tensor images_;
  tasks::Targets targets_;
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
