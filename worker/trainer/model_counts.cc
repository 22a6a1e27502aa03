// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/model_counts.h"

#include <fmt/format.h>

#include "models/counting/conventions.h"
#include "models/counting/memory.h"

namespace abl::trainer {
namespace {

using Counts = std::map<std::string, double>;

void add_conventions(const std::vector<models::PartCount>& parts, Counts& counts) {
  for (const auto& convention : models::conventions()) {
    auto changed = parts;
    convention.apply(changed);
    counts.emplace(fmt::format("flops.fvcore({})@{}", convention.batch_norm, convention.name),
                   flops_fvcore(changed.front().work, convention.batch_norm));
  }
}

void add_memory(const models::ModelOptions& options, Counts& counts) {
  const auto step = [&](std::int64_t batch, models::Precision precision) {
    return models::predict_step_memory(
        [&](torch::Device device) { return models::build(options, device); },
        {.batch = batch, .image_size = models::image_size(options), .precision = precision});
  };
  const auto state = [&](models::Precision precision) {
    const auto memory = step(1, precision);
    return static_cast<double>(memory.parameters + memory.gradients + memory.optimiser);
  };
  counts.emplace("memory.state", state(models::Precision::kFloat));
  counts.emplace("memory.state.bf16", state(models::Precision::kBFloat16));
  // Of few images the optimiser's moment is the peak, of many the start of the backward pass: that one is a
  // line.
  constexpr std::int64_t kMany = 4096;
  for (const auto* name : {"fp32", "bf16", "fp16"}) {
    const auto precision = counted_as(name);
    const auto many = static_cast<double>(step(kMany, precision).peak);
    const auto image = (static_cast<double>(step(2 * kMany, precision).peak) - many) / kMany;
    counts.emplace(fmt::format("memory.image.{}", name), image);
    counts.emplace(fmt::format("memory.base.{}", name), many - kMany * image);
  }
}

}  // namespace

models::Precision counted_as(const std::string& precision) {
  if (precision == "bf16") return models::Precision::kBFloat16;
  return precision == "fp16" ? models::Precision::kAutocast : models::Precision::kFloat;
}

Counts flops_of(const models::Work& work) {
  return {{"flops.macs", static_cast<double>(work.macs)},
          {"flops.msf", flops_msf(work)},
          {"flops.cnn", flops_cnn(work)},
          {"flops.fvcore(2)", flops_fvcore(work, 2)},
          {"flops.fvcore(5)", flops_fvcore(work, 5)}};
}

Counts counts_of(const models::ModelOptions& options, const std::vector<models::PartCount>& parts) {
  const auto& whole = parts.front();
  auto counts = flops_of(whole.work);
  counts.emplace("params.all", static_cast<double>(whole.params_all));
  counts.emplace("params.weights", static_cast<double>(whole.params_weights));
  add_conventions(parts, counts);
  add_memory(options, counts);
  return counts;
}

}  // namespace abl::trainer
