// SPDX-License-Identifier: Apache-2.0
#include "models/counting/counter.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "models/counting/convolved_sizes.h"
#include "models/counting/meta_kernels.h"
#include "models/counting/parameters.h"
#include "models/layers/part.h"

namespace abl::models {
namespace {

/// "abl::models::LinearImpl" -> "Linear"; a container of PyTorch's keeps its last name too.
std::string type_name(const torch::nn::Module& module) {
  std::string name = module.name();
  name = name.substr(name.rfind(':') + 1);
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

class Counter final : public Observer {
 public:
  explicit Counter(const torch::nn::Module& model) {
    std::unordered_map<std::string, std::size_t> by_name;
    for (const auto& item : model.named_modules()) {
      const auto& name = item.key();
      index_.emplace(item.value().get(), parts_.size());
      by_name.emplace(name, parts_.size());
      owner_.push_back(name.empty() ? kNone
                                    : by_name.at(name.substr(
                                          0, name.find('.') == std::string::npos ? 0 : name.rfind('.'))));
      auto& part = parts_.emplace_back(PartCount{.name = item.key(), .type = type_name(*item.value())});
      for (const auto& entry : list_parameters(*item.value())) {
        part.params_all += entry.elements;
        if (entry.is_weight) part.params_weights += entry.elements;
      }
      const auto parameters = item.value()->parameters();
      const auto wants = [](const torch::Tensor& parameter) { return parameter.requires_grad(); };
      learns_.push_back(parameters.empty() ? owner_.back() == kNone || learns_[owner_.back()]
                                           : std::ranges::any_of(parameters, wants));
    }
    running_.push_back(0);  // the model itself, which is called through no holder
  }

  void enter(const torch::nn::Module& part) override { running_.push_back(index_.at(&part)); }
  void leave(const torch::nn::Module&, const torch::Tensor& output) override {
    if (output.defined()) set_output(running_.back(), output);
    running_.pop_back();
  }
  void residual(std::int64_t elements) override { add({.residual = elements}); }
  void scaled(std::int64_t elements) override { add({.scaled = elements}); }

  bool wants_literal() const override { return true; }

  void add(const Work& work) {
    for (auto part = running_.back(); part != kNone; part = owner_[part]) parts_[part].work += work;
  }
  void set_output(std::size_t part, const torch::Tensor& output) {
    parts_[part].output = output.sizes().vec();
  }
  std::vector<PartCount> take() { return std::move(parts_); }
  /// Whether the part that is at work has anything to learn.
  bool learns() const { return learns_[running_.back()]; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::vector<PartCount> parts_;
  std::vector<std::size_t> owner_;  ///< of each part: the one that contains it
  std::vector<bool>
      learns_;  ///< of each part: whether a parameter in it does, or around it where it has none
  std::unordered_map<const torch::nn::Module*, std::size_t> index_;
  std::vector<std::size_t> running_;  ///< the parts that are at work, outermost first
};

/// Hears every operator that this thread calls, and tells the work of those that have some. What such an
/// operator calls in turn is its own affair.
class OperatorTap {
 public:
  explicit OperatorTap(std::function<void(const Work&)> hear)
      : hear_{std::move(hear)},
        handle_{at::addThreadLocalCallback(
            at::RecordFunctionCallback{&start, &end}.needsInputs(true).scopes({at::RecordScope::FUNCTION}))} {
    current() = {&hear_, 0};
  }
  ~OperatorTap() {
    at::removeCallback(handle_);
    current() = {};
  }
  OperatorTap(const OperatorTap&) = delete;
  OperatorTap& operator=(const OperatorTap&) = delete;

 private:
  struct State {
    const std::function<void(const Work&)>* hear = nullptr;
    int inside = 0;  ///< operators with work that are under way
  };
  struct UnderWay : at::ObserverContext {};
  static State& current() {
    thread_local State state;
    return state;
  }
  static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& call) {
    const auto work = operator_work(call);
    if (!work) return nullptr;
    if (current().inside++ == 0) (*current().hear)(*work);
    return std::make_unique<UnderWay>();
  }
  static void end(const at::RecordFunction&, at::ObserverContext* context) {
    if (context) --current().inside;
  }

  const std::function<void(const Work&)> hear_;
  const at::CallbackHandle handle_;
};

}  // namespace

namespace {

std::vector<PartCount> count(torch::nn::Module& model, std::int64_t image_size,
                             const std::function<torch::Tensor(const torch::Tensor& image)>& answer) {
  use_meta_kernels();
  const torch::NoGradGuard no_grad;
  model.eval();
  Counter counter{model};
  {
    const Observation observation{counter};
    const OperatorTap tap{[&](const Work& work) { counter.add(work); }};
    counter.set_output(0, answer(torch::empty({1, 3, image_size, image_size}, torch::kMeta)));
  }
  return counter.take();
}

}  // namespace

std::vector<PartCount> count_parts(Classifier& model, std::int64_t image_size) {
  return count(model, image_size, [&](const torch::Tensor& image) { return model.forward(image); });
}

std::vector<PartCount> count_parts(const Network& network, std::int64_t image_size) {
  const auto model = network.build(torch::kMeta);
  return count(*model, image_size, [&](const torch::Tensor& image) { return network.answer(*model, image); });
}

std::int64_t count_step(const Network& network, std::int64_t image_size) {
  constexpr std::int64_t kImages = 2;  // of one alone some normalisations have nothing to average
  constexpr std::int64_t kForwardAndBackward = 3;
  use_meta_kernels();
  const auto model = network.build(torch::kMeta);
  model->train();
  Counter counter{*model};
  std::int64_t macs = 0;
  {
    const Observation observation{counter};
    const OperatorTap tap{
        [&](const Work& work) { macs += work.macs * (counter.learns() ? kForwardAndBackward : 1); }};
    network.loss(*model, torch::empty({kImages, 3, image_size, image_size}, torch::kMeta));
  }
  return macs / kImages;
}

namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const at::Tensor& tensor(const Inputs& inputs, std::size_t index) { return inputs[index].toTensor(); }

/// [… n, k] × [… k, m]
Work product(const at::Tensor& a, const at::Tensor& b) { return {.macs = a.numel() * b.size(-1)}; }

/// Source: the textbook formula; groups divide the input channels that each output sees. A transposed one has
/// as many products as the convolution whose gradient it is.
Work convolved(const Inputs& inputs) {
  const auto& x = tensor(inputs, 0);
  const auto& weight = tensor(inputs, 1);
  if (inputs[6].toBool()) return {.macs = x.numel() * weight.numel() / weight.size(0)};
  const auto sizes =
      convolved_sizes(x, weight, inputs[3].toIntVector(), inputs[4].toIntVector(), inputs[5].toIntVector());
  const auto places = std::accumulate(sizes.begin(), sizes.end(), x.size(0), std::multiplies<>{});
  return {.macs = places * weight.numel()};
}

/// Scores, then their sum of values.
Work attention(const Inputs& inputs) {
  const auto& q = tensor(inputs, 0);
  const auto keys = tensor(inputs, 1).size(-2);
  return {.macs = q.numel() * keys + q.numel() / q.size(-1) * keys * tensor(inputs, 2).size(-1)};
}

using Rule = Work (*)(const Inputs&);

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all{
      {"aten::mm", [](const Inputs& in) { return product(tensor(in, 0), tensor(in, 1)); }},
      {"aten::bmm", [](const Inputs& in) { return product(tensor(in, 0), tensor(in, 1)); }},
      {"aten::addmm", [](const Inputs& in) { return product(tensor(in, 1), tensor(in, 2)); }},
      {"aten::baddbmm", [](const Inputs& in) { return product(tensor(in, 1), tensor(in, 2)); }},
      {"aten::convolution", convolved},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::native_layer_norm", [](const Inputs& in) { return Work{.layer_norm = tensor(in, 0).numel()}; }},
      {"aten::native_batch_norm", [](const Inputs& in) { return Work{.batch_norm = tensor(in, 0).numel()}; }},
      {"aten::relu", [](const Inputs& in) { return Work{.relu = tensor(in, 0).numel()}; }},
      {"aten::relu_", [](const Inputs& in) { return Work{.relu = tensor(in, 0).numel()}; }},
  };
  return all;
}

}  // namespace

std::optional<Work> operator_work(const at::RecordFunction& call) {
  const auto rule = rules().find(call.name());
  if (rule == rules().end()) return std::nullopt;
  return rule->second(call.inputs());
}

}  // namespace abl::models
