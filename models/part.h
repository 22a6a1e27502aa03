// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// Sees the parts of a model at work: how features are taken out of the middle and work is counted by part.
/// Thread: the one that runs the model.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void enter(const torch::nn::Module& part) = 0;
  /// `output`: what the part returned; undefined where that was no tensor.
  virtual void leave(const torch::nn::Module& part, const torch::Tensor& output) = 0;
};

/// Lets `observer` see every part that runs on this thread during its life. One at a time.
class Observation {
 public:
  explicit Observation(Observer& observer) { current() = &observer; }
  ~Observation() { current() = nullptr; }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  static Observer*& current() {
    thread_local Observer* observer = nullptr;
    return observer;
  }
};

/// The holder of every module here, in place of TORCH_MODULE: as `torch::nn::ModuleHolder`, and its call is
/// seen by an observer.
///   class MlpImpl : public torch::nn::Module { … };
///   using Mlp = Part<MlpImpl>;
template <class Impl>
class Part : public torch::nn::ModuleHolder<Impl> {
 public:
  using torch::nn::ModuleHolder<Impl>::ModuleHolder;
  Part() = default;

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    Impl& part = *this->impl_;
    Observer* observer = Observation::current();
    if (!observer) return part.forward(std::forward<Arguments>(arguments)...);
    observer->enter(part);
    auto output = part.forward(std::forward<Arguments>(arguments)...);
    if constexpr (std::is_same_v<decltype(output), torch::Tensor>)
      observer->leave(part, output);
    else
      observer->leave(part, {});
    return output;
  }
};

}  // namespace abl::models
