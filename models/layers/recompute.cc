// SPDX-License-Identifier: Apache-2.0
#include "models/layers/recompute.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/custom_class.h>
#include <torch/utils.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "models/layers/part.h"

namespace abl::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool second_run = false;

class SecondRun {
 public:
  SecondRun() { second_run = true; }
  ~SecondRun() { second_run = before_; }
  SecondRun(const SecondRun&) = delete;
  SecondRun& operator=(const SecondRun&) = delete;

 private:
  const bool before_ = second_run;
};

/// The default generator of a device, where random numbers of a block come from.
class Draws {
 public:
  explicit Draws(torch::Device device) {
    if (!device.is_meta()) generator_ = at::globalContext().defaultGenerator(device);
  }
  /// Undefined on the meta device, which draws nothing.
  Tensor state() {
    if (!generator_.defined()) return {};
    const std::lock_guard lock{generator_.mutex()};
    return generator_.get_state();
  }
  void set(const Tensor& state) {
    if (!state.defined()) return;
    const std::lock_guard lock{generator_.mutex()};
    generator_.set_state(state);
  }

 private:
  at::Generator generator_;
};

/// Draws as from `state` on while it lives, then as if nothing had been drawn; does nothing without a state.
class DrawsAgain {
 public:
  DrawsAgain(torch::Device device, const Tensor& state) : draws_{device} {
    if (!state.defined()) return;
    before_ = draws_.state();
    draws_.set(state);
  }
  ~DrawsAgain() { draws_.set(before_); }
  DrawsAgain(const DrawsAgain&) = delete;
  DrawsAgain& operator=(const DrawsAgain&) = delete;

 private:
  Draws draws_;
  Tensor before_;
};

/// Without it autocast would keep casts of parameters that know of no gradient, and use them in the second
/// run.
class NoCastsKept {
 public:
  NoCastsKept() { at::autocast::set_autocast_cache_enabled(false); }
  ~NoCastsKept() { at::autocast::set_autocast_cache_enabled(before_); }
  NoCastsKept(const NoCastsKept&) = delete;
  NoCastsKept& operator=(const NoCastsKept&) = delete;

 private:
  const bool before_ = at::autocast::is_autocast_cache_enabled();
};

/// What the second run needs beside tensors; a capsule, which is how a context keeps such.
struct FirstRun : torch::CustomClassHolder {
  RunBlock run;
  variable_list parameters;
  at::ThreadLocalState mode;  ///< autocast above all
  Tensor draws;               ///< state of the generator before; undefined where nothing was drawn
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  /// `anchor` wants a gradient, so that there is a backward pass even where x does not.
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& anchor,
                        const c10::intrusive_ptr<FirstRun>& first) {
    static_cast<void>(anchor);
    Draws draws{x.device()};
    const auto before = draws.state();
    const auto y = [&] {
      const NoCastsKept no_casts_kept;
      return first->run(x);
    }();
    if (before.defined() && !before.equal(draws.state())) first->draws = before;
    auto saved = std::exchange(first->parameters, {});
    saved.insert(saved.begin(), x);
    context->save_for_backward(std::move(saved));
    context->saved_data["first"] = c10::IValue::make_capsule(first);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(
        torch::autograd::Engine::get_default_engine().is_checkpoint_valid(),
        "a recomputed block adds to its parameters' .grad(): call backward() without inputs, not grad()");
    TORCH_CHECK(!torch::GradMode::is_enabled(), "a recomputed block has no second derivative");
    const auto saved = context->get_saved_variables();  // complains if one has changed
    const auto first = c10::static_intrusive_pointer_cast<FirstRun>(context->saved_data["first"].toCapsule());
    const auto x = saved[0].detach().requires_grad_(saved[0].requires_grad());
    torch::autograd::backward({again(*first, x)}, gradients);
    return {x.grad(), {}, {}};
  }

 private:
  static Tensor again(const FirstRun& first, const Tensor& x) {
    const at::ThreadLocalStateGuard mode{first.mode};  // CUDA's backward pass has a thread of its own
    const torch::AutoGradMode with_gradients{true};
    const DrawsAgain draws_again{x.device(), first.draws};
    const SecondRun second;
    at::autocast::clear_cache();  // whose casts may know of other gradients
    auto y = first.run(x);
    at::autocast::clear_cache();
    return y;
  }
};

bool wants_gradient(const Tensor& tensor) { return tensor.requires_grad(); }

}  // namespace

Tensor recomputed(RunBlock run, const Tensor& x, std::vector<Tensor> parameters) {
  const bool is_wanted =
      torch::GradMode::is_enabled() && (wants_gradient(x) || std::ranges::any_of(parameters, wants_gradient));
  // An observer may ask for another arithmetic, and is gone when the block runs again.
  if (!is_wanted || Observation::current()) return run(x);
  const auto first = c10::make_intrusive<FirstRun>();
  first->run = std::move(run);
  first->parameters = std::move(parameters);
  return Recomputed::apply(x, torch::empty({0}, x.options().requires_grad(true)), first);
}

Tensor run_block(const RunBlock& run, const Tensor& x, bool is_recomputed,
                 std::initializer_list<const torch::nn::Module*> modules) {
  if (!is_recomputed) return tell_block(x, run(x));
  std::vector<Tensor> parameters;
  for (const auto* module : modules)
    if (module) std::ranges::copy(module->parameters(), std::back_inserter(parameters));
  return tell_block(x, recomputed(run, x, std::move(parameters)));
}

bool recomputing() { return second_run; }

void check_recomputed(std::int64_t checkpoint_blocks, std::int64_t blocks) {
  TORCH_CHECK_VALUE(checkpoint_blocks >= 0 && checkpoint_blocks <= blocks, "checkpoint_blocks is ",
                    checkpoint_blocks, " in a model of ", blocks, " blocks; 0 to ", blocks, " are expected");
}

}  // namespace abl::models
