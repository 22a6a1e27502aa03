// SPDX-License-Identifier: Apache-2.0
#include "planning/step_memory.h"

#include <algorithm>
#include <cmath>

#include "config/data/data_sets.h"
#include "config/task/task_section.h"
#include "planning/workload.h"
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

constexpr double kMiB = 1 << 20;

// Of a process on a CPU, as measured (bench/plan, docs/results.md): what it takes before it builds a model,
// and what its first step adds: code, kernels, threads.
constexpr double kBase = 112 * kMiB, kFirstStep = 31 * kMiB;
/// More of that in 16 bits, for kernels and reordered weights; for convolutions, which alone embed patches or
/// of which all is made; and for each further thread.
constexpr double kIn16Bits = 16 * kMiB, kPatches = 16 * kMiB, kConvolutions = 40 * kMiB, kThread = 3 * kMiB;
/// Of a step: scratch memory of kernels, and what the allocator holds unused; more where much is convolved.
constexpr double kUnused = 0.06, kUnusedWithConvolutions = 0.12;
/// On a GPU, as stated and not measured: CUDA's context with the libraries' code, and their workspaces; and
/// what the allocator holds unused.
constexpr double kContext = 512 * kMiB, kWorkspaces = 96 * kMiB, kUnusedOnGpu = 0.06;
/// Of a decoded image beside its pixels: its name, its place, what the allocator adds.
constexpr double kImageHead = 500;

double area(int side) { return static_cast<double>(side) * side; }

/// Of batches that wait, as the trainer's loader holds them (worker/trainer/tasks/loader.h): bytes.
double loader_bytes(const config::TrialConfig& trial, int threads) {
  constexpr double kQueue = 512 * kMiB;
  const bool has_views = trial.task.kind == config::TaskKind::kDino;
  const double views =
      has_views ? 2 * area(trial.data.image_size) + trial.task.local_views * area(trial.task.local_size)
                : area(trial.data.image_size);
  const double batch = 3.0 * trial.recipe.batch * views;
  const double ahead =
      std::clamp(std::floor(kQueue / std::max(1.0, batch)), 1.0, 2.0 * std::max(1, threads) + 2);
  return (ahead + 2) * batch;  // and the one that is used, and the one that is made
}

/// Images that stay in memory once they are decoded: those of data sets whose images are known to be small.
double data_bytes(const config::TrialConfig& trial, const std::map<std::string, ImageCounts>& images) {
  const auto* known = config::find_data_set(trial.data.name);
  if (!known || known->any_size) return 0;
  constexpr double kKept = 512 * kMiB;  // of a split, in equal shares
  const double image = 3.0 * known->image_size * known->image_size;
  const ImageCounts counted = image_counts(trial, images);
  double bytes = 0;
  for (const std::int64_t split : {counted.train, counted.val})
    if (image * static_cast<double>(split) <= kKept)
      bytes += (image + kImageHead) * static_cast<double>(split);
  return bytes;
}

/// Features among which nearest ones are looked for, of the width of a plain transformer, in float32, and the
/// similarities that are held at once; where the model is.
double bank_bytes(const config::TrialConfig& trial, const std::map<std::string, ImageCounts>& images) {
  if (!config::describes_images(trial.task)) return 0;
  constexpr double kSimilarities = 128 * kMiB;
  const auto bank = static_cast<double>(bank_images(trial.task, image_counts(trial, images).train));
  return 4.0 * bank * trial.model.dim + std::min(kSimilarities, 4.0 * bank * trial.recipe.batch);
}

/// The copy of the state that is written beside the training.
double copy_bytes(const sweeps::Row& row, const Counts& counts) {
  const double weights = count_of(counts, protocol::kMemoryWeights)
                             .value_or(4 * count_of(counts, protocol::kParamsAll).value_or(0));
  return (3.0 + row.more_weights) * weights;
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

std::optional<std::map<std::string, double>> trial_memory(const sweeps::Row& row, const ModelCounts& counts,
                                                          int gpus, const Place& place,
                                                          std::optional<double> base_bytes,
                                                          const std::map<std::string, ImageCounts>& images) {
  const auto whole = step_memory(row, counts, gpus);
  if (!whole) return std::nullopt;
  sweeps::Row alone = row;
  alone.teacher.clear();
  const double own = *step_memory(alone, counts, gpus);
  const auto trial = trial_of(row.config);
  const std::string family = trial ? trial->model.family : "";
  const bool convolves = family == "resnet" || family == "regnet" || family == "efficientnet";
  const bool embeds = !family.empty() && family != "simple-vit";  // patches, by a convolution
  std::map<std::string, double> parts{{"step", own}, {"teacher", *whole - own}};
  if (const double bank = trial ? bank_bytes(*trial, images) : 0; bank > 0) parts["neighbours"] = bank;
  if (place.is_gpu()) {
    parts["program"] = kContext + kWorkspaces + kUnusedOnGpu * *whole;
    return parts;
  }
  parts["program"] = base_bytes.value_or(kBase) + kFirstStep +
                     (row.precision == config::Precision::kFloat32 ? 0 : kIn16Bits) +
                     (convolves ? kConvolutions
                      : embeds  ? kPatches
                                : 0) +
                     kThread * (place.threads - 1) +
                     (convolves || family == "xcit" ? kUnusedWithConvolutions : kUnused) * *whole;
  parts["checkpoint"] = copy_bytes(row, counts.at(row.model));
  if (trial) {
    parts["loader"] = loader_bytes(*trial, place.threads);
    parts["data"] = data_bytes(*trial, images);
  }
  return parts;
}

}  // namespace abl::planning
