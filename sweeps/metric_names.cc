// SPDX-License-Identifier: Apache-2.0
#include "sweeps/metric_names.h"

#include <algorithm>
#include <array>

namespace abl::sweeps {
namespace {

constexpr std::array kTrainerMetrics{
    Quantity{"train/loss", "", "lower"},
    Quantity{"train/top1", "%", "higher"},
    Quantity{"val/loss", "", "lower"},
    Quantity{"val/top1", "%", "higher"},
    Quantity{"val/top5", "%", "higher"},
    Quantity{"val_ema/loss", "", "lower"},
    Quantity{"val_ema/top1", "%", "higher"},
    Quantity{"val_ema/top5", "%", "higher"},
    Quantity{"lr", "", "none"},
    Quantity{"images_per_s", "", "higher"},
    Quantity{"memory_bytes", "G", "lower"},
    Quantity{"time/data", "", "lower"},
    Quantity{"time/checkpoints", "", "lower"},
    Quantity{"time/evaluation", "", "lower"},
};
constexpr std::array kCountModes{
    Quantity{"params.all", "M", "lower"},
    Quantity{"params.weights", "M", "lower"},
    Quantity{"flops.macs", "G", "lower"},
    Quantity{"flops.msf", "G", "lower"},
    Quantity{"flops.cnn", "G", "lower"},
    Quantity{"flops.fvcore(2)", "G", "lower"},
    Quantity{"flops.fvcore(5)", "G", "lower"},
    Quantity{"flops.fvcore(5)@xcit-2021", "G", "lower"},
    Quantity{"flops.fvcore(2)@mk-head-all-tokens", "G", "lower"},
    Quantity{"memory.state", "G", "lower"},
    Quantity{"memory.state.bf16", "G", "lower"},
    Quantity{"memory.base.fp32", "G", "lower"},
    Quantity{"memory.base.bf16", "G", "lower"},
    Quantity{"memory.base.fp16", "G", "lower"},
    Quantity{"memory.image.fp32", "G", "lower"},
    Quantity{"memory.image.bf16", "G", "lower"},
    Quantity{"memory.image.fp16", "G", "lower"},
};

}  // namespace

std::span<const Quantity> trainer_metrics() { return kTrainerMetrics; }
std::span<const Quantity> count_modes() { return kCountModes; }

std::vector<std::string> names(std::span<const Quantity> quantities) {
  std::vector<std::string> all;
  for (const Quantity& quantity : quantities) all.emplace_back(quantity.name);
  return all;
}

const Quantity* find(std::span<const Quantity> quantities, std::string_view name) {
  const auto found = std::ranges::find(quantities, name, &Quantity::name);
  return found == quantities.end() ? nullptr : &*found;
}

}  // namespace abl::sweeps
