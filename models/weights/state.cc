// SPDX-License-Identifier: Apache-2.0
#include "models/weights/state.h"

#include <fmt/ranges.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/layers/layers.h"

namespace abl::models {
namespace {

std::string text_of(torch::IntArrayRef shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

std::map<std::string, torch::Tensor> state_of(const torch::nn::Module& model) {
  std::map<std::string, torch::Tensor> state;
  for (const auto& parameter : model.named_parameters())
    state.emplace(parameter.key(), parameter.value().detach());
  for (const auto& module : model.named_modules("", /*include_self=*/false))
    if (module.value()->as<BatchNorm2dImpl>() || module.value()->as<RunningMeanImpl>())
      for (const auto& buffer : module.value()->named_buffers())
        state.emplace(module.key() + "." + buffer.key(), buffer.value());
  return state;
}

void load_state(torch::nn::Module& model, const std::map<std::string, torch::Tensor>& state) {
  const auto own = state_of(model);
  std::string problems;
  const auto report = [&](std::string problem) { problems += (problems.empty() ? "" : "\n") + problem; };
  for (const auto& [name, tensor] : own) {
    const auto given = state.find(name);
    if (given == state.end())
      report(fmt::format("{} is missing; the model expects {}", name, text_of(tensor.sizes())));
    else if (given->second.sizes() != tensor.sizes())
      report(fmt::format("{} has shape {}; the model expects {}", name, text_of(given->second.sizes()),
                         text_of(tensor.sizes())));
  }
  for (const auto& [name, tensor] : state)
    if (!own.contains(name)) report(fmt::format("{} is not a parameter of the model", name));
  if (!problems.empty()) throw Error{Code::kInvalidArgument, problems};

  const torch::NoGradGuard no_grad;
  for (auto [name, tensor] : own) tensor.copy_(state.at(name));
}

}  // namespace abl::models
