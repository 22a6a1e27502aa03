// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/loader.h"

namespace abl::tasks {
namespace {

constexpr std::int64_t kQueueBytes = std::int64_t{512} << 20;

}  // namespace

int batches_ahead(std::int64_t images, int image_size, int threads) {
  const std::int64_t bytes = std::max<std::int64_t>(1, images * 3 * image_size * image_size);
  return static_cast<int>(std::clamp<std::int64_t>(kQueueBytes / bytes, 1, 2 * std::max(1, threads) + 2));
}

}  // namespace abl::tasks
