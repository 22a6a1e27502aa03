// SPDX-License-Identifier: Apache-2.0
#include "planning/step_memory.h"

#include <algorithm>

#include "protocol/counts.h"

namespace abl::planning {
namespace {

using Counts = std::map<std::string, double>;

int part_of(int images, int gpus) {
  const int parts = std::max(gpus, 1);
  return (images + parts - 1) / parts;
}

std::optional<double> count_of(const Counts& counts, std::string_view name) {
  const auto found = counts.find(std::string{name});
  return found == counts.end() ? std::nullopt : std::optional{found->second};
}

/// Of so many images; nothing where either count is lacking.
std::optional<double> bytes_of(const Counts& counts, std::string_view memory, config::Precision precision,
                               int images) {
  const auto base = count_of(counts, protocol::beside_images(memory, name_of(precision))),
             image = count_of(counts, protocol::per_image(memory, name_of(precision)));
  if (!base || !image) return std::nullopt;
  return *base + images * *image;
}

/// The peak of a step that takes `step` bytes and is preceded by the teacher's forward pass, while the
/// optimiser's `state` is there and gradients are not.
std::optional<double> peak_with_teacher(const sweeps::Row& row, const Counts& teacher, int gpus, double step,
                                        double state, double gradients) {
  const auto weights = count_of(teacher, protocol::kMemoryWeights);
  const auto forward = bytes_of(teacher, protocol::kForwardMemory, row.precision, part_of(row.batch, gpus));
  if (!weights || !forward) return std::nullopt;
  return *weights + std::max(step, state - gradients + *forward);
}

}  // namespace

std::optional<double> step_memory(const sweeps::Row& row, const std::map<std::string, Counts>& counts,
                                  int gpus) {
  const auto own = counts.find(row.model), teacher = counts.find(row.teacher);
  if (row.batch == 0 || own == counts.end()) return std::nullopt;
  const bool rounds = row.precision == config::Precision::kBFloat16;
  const auto state = count_of(own->second, rounds ? protocol::kMemoryStateBf16 : protocol::kMemoryState);
  const auto many = bytes_of(own->second, protocol::kStepMemory, row.precision, part_of(row.batch, gpus));
  if (!state || !many) return std::nullopt;
  const double weights = 4.0 * count_of(own->second, protocol::kParamsAll).value_or(0);
  const double more = row.more_weights * weights, step = std::max(*state, *many) + more;
  if (row.teacher.empty()) return step;
  if (teacher == counts.end()) return std::nullopt;
  return peak_with_teacher(row, teacher->second, gpus, step, *state + more, weights);
}

}  // namespace abl::planning
