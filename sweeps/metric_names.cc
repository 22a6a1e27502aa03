// SPDX-License-Identifier: Apache-2.0
#include "sweeps/metric_names.h"

#include <algorithm>
#include <array>

namespace abl::sweeps {
namespace {

constexpr std::array kTrainerMetrics{
    Quantity{"train/loss", ""},       Quantity{"train/top1", "%"},     Quantity{"val/loss", ""},
    Quantity{"val/top1", "%"},        Quantity{"val/top5", "%"},       Quantity{"val_ema/loss", ""},
    Quantity{"val_ema/top1", "%"},    Quantity{"val_ema/top5", "%"},   Quantity{"lr", ""},
    Quantity{"images_per_s", ""},     Quantity{"memory_bytes", "G"},   Quantity{"time/data", ""},
    Quantity{"time/checkpoints", ""}, Quantity{"time/evaluation", ""},
};
constexpr std::array kCountModes{
    Quantity{"params.all", "M"},
    Quantity{"params.weights", "M"},
    Quantity{"flops.macs", "G"},
    Quantity{"flops.msf", "G"},
    Quantity{"flops.cnn", "G"},
    Quantity{"flops.fvcore(2)", "G"},
    Quantity{"flops.fvcore(5)", "G"},
    Quantity{"flops.fvcore(5)@xcit-2021", "G"},
    Quantity{"flops.fvcore(2)@mk-head-all-tokens", "G"},
    Quantity{"memory.state", "G"},
    Quantity{"memory.state.bf16", "G"},
    Quantity{"memory.base.fp32", "G"},
    Quantity{"memory.base.bf16", "G"},
    Quantity{"memory.base.fp16", "G"},
    Quantity{"memory.image.fp32", "G"},
    Quantity{"memory.image.bf16", "G"},
    Quantity{"memory.image.fp16", "G"},
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
