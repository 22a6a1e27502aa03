// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace abl::models {

/// Sees the parts of a model at work: how features are taken out of the middle and work is counted by part.
/// Thread: the one that runs the model.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void enter(const torch::nn::Module& part) = 0;
  /// `output`: what the part returned; undefined where that was no tensor.
  virtual void leave(const torch::nn::Module& part, const torch::Tensor& output) = 0;
  /// Work that papers count and that no operator's name tells: elements of a residual addition, and elements
  /// multiplied by the temperature of attention.
  virtual void residual(std::int64_t elements) { static_cast<void>(elements); }
  virtual void scaled(std::int64_t elements) { static_cast<void>(elements); }
  /// Whether parts are to compute as the papers write it and not as it is fast: each role's projection as a
  /// product of its own, a kernel without the channels that fused attention needs.
  virtual bool wants_literal() const { return false; }
  /// A block of the model's trunk, with its residuals: what it was given and what it returned, the channels
  /// of a token along dimension `channels`. Of a model without such blocks nothing is heard.
  virtual void block(const torch::Tensor& input, const torch::Tensor& output, std::int64_t channels) {
    static_cast<void>(input), static_cast<void>(output), static_cast<void>(channels);
  }
  /// Whether `attention` is to be called: the weights are computed for it alone.
  virtual bool wants_attention() const { return false; }
  /// How much of each key's value every query of a head takes: along the last dimension it sums to one.
  /// Shape: [B, H, queries, keys], of attention in windows [B·W, H, N, N]; at least float32.
  virtual void attention(const torch::Tensor& weights) { static_cast<void>(weights); }
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

/// Whether an observer wants what runs to be the paper's form.
inline bool literal() {
  const Observer* observer = Observation::current();
  return observer && observer->wants_literal();
}

/// Owns matrices that act as linear layers or convolutions: what `params.weights` counts (MSF), which leaves
/// out biases, norms, tokens and tables. Every module with such matrices of its own says so.
class WeightOwner {
 public:
  virtual ~WeightOwner() = default;
  virtual std::vector<torch::Tensor> weights() const = 0;
};

/// A module whose weights, and those of its parts, stay in float32 where a model's are lowered
/// (`lower_weights`).
class FullPrecision {
 public:
  virtual ~FullPrecision() = default;
};

/// Tells an observer that so many elements are multiplied by the temperature of attention.
inline void count_scaled(std::int64_t elements) {
  if (Observer* observer = Observation::current()) observer->scaled(elements);
}

/// Tells an observer of a block of the trunk. Returns: the output.
inline torch::Tensor tell_block(const torch::Tensor& input, torch::Tensor output,
                                std::int64_t channels = -1) {
  if (Observer* observer = Observation::current()) observer->block(input, output, channels);
  return output;
}

/// The observer that wants to see attention; null: none does.
inline Observer* attention_observer() {
  Observer* observer = Observation::current();
  return observer && observer->wants_attention() ? observer : nullptr;
}

/// x + branch, and an observer hears of it.
inline torch::Tensor add_residual(const torch::Tensor& x, const torch::Tensor& branch) {
  if (Observer* observer = Observation::current()) observer->residual(x.numel());
  return x + branch;
}

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
