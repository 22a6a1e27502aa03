// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/model_counts.h"

#include <fmt/format.h>

#include <functional>

#include "models/counting/conventions.h"
#include "models/counting/memory.h"
#include "protocol/counts.h"

namespace abl::commands {
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

/// Of few images the optimiser's moment is the peak, of many the start of the backward pass: that one is a
/// line.
void add_line(std::string_view memory, std::string_view precision,
              const std::function<std::int64_t(std::int64_t batch)>& peak, Counts& counts) {
  constexpr std::int64_t kMany = 4096;
  const auto many = static_cast<double>(peak(kMany));
  const auto image = (static_cast<double>(peak(2 * kMany)) - many) / kMany;
  counts.emplace(protocol::per_image(memory, precision), image);
  counts.emplace(protocol::beside_images(memory, precision), many - kMany * image);
}

void add_step_memory(const models::ModelOptions& options, Counts& counts) {
  const auto step = [&](std::int64_t batch, models::Precision precision) {
    return models::predict_step_memory(
        [&](torch::Device device) { return models::build(options, device); },
        {.batch = batch, .image_size = models::image_size(options), .precision = precision});
  };
  const auto state = [&](models::Precision precision) {
    const auto memory = step(1, precision);
    return static_cast<double>(memory.parameters + memory.gradients + memory.optimiser);
  };
  counts.emplace(protocol::kMemoryState, state(models::Precision::kFloat));
  counts.emplace(protocol::kMemoryStateBf16, state(models::Precision::kBFloat16));
  for (const auto precision : values_of<config::Precision>())
    add_line(
        protocol::kStepMemory, name_of(precision),
        [&](std::int64_t batch) { return step(batch, counted_as(precision)).peak; }, counts);
}

void add_forward_memory(const models::ModelOptions& options, Counts& counts) {
  const auto forward = [&](std::int64_t batch, models::Precision precision) {
    return models::predict_forward_memory(
        [&](torch::Device device) { return models::build(options, device); },
        {.batch = batch, .image_size = models::image_size(options), .precision = precision});
  };
  counts.emplace(protocol::kMemoryWeights,
                 static_cast<double>(forward(1, models::Precision::kFloat).weights));
  for (const auto precision : values_of<config::Precision>())
    add_line(
        protocol::kForwardMemory, name_of(precision),
        [&](std::int64_t batch) { return forward(batch, counted_as(precision)).peak; }, counts);
}

}  // namespace

models::Precision counted_as(config::Precision precision) {
  switch (precision) {
    case config::Precision::kBFloat16:
      return models::Precision::kBFloat16;
    case config::Precision::kFloat16:
      return models::Precision::kAutocast;
    case config::Precision::kFloat32:
      break;
  }
  return models::Precision::kFloat;
}

Counts flops_of(const models::Work& work) {
  return {{std::string{protocol::kFlopsMacs}, static_cast<double>(work.macs)},
          {std::string{protocol::kFlopsMsf}, flops_msf(work)},
          {std::string{protocol::kFlopsCnn}, flops_cnn(work)},
          {std::string{protocol::kFlopsFvcore2}, flops_fvcore(work, 2)},
          {std::string{protocol::kFlopsFvcore5}, flops_fvcore(work, 5)}};
}

Counts counts_of(const models::ModelOptions& options, const std::vector<models::PartCount>& parts) {
  const auto& whole = parts.front();
  auto counts = flops_of(whole.work);
  counts.emplace(protocol::kParamsAll, static_cast<double>(whole.params_all));
  counts.emplace(protocol::kParamsWeights, static_cast<double>(whole.params_weights));
  add_conventions(parts, counts);
  add_step_memory(options, counts);
  add_forward_memory(options, counts);
  return counts;
}

}  // namespace abl::commands
