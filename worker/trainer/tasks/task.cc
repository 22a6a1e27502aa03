// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/task.h"

#include <algorithm>

namespace abl::tasks {

ranks::BatchShare share_of(const config::RecipeConfig& recipe, const TaskData& data,
                           const ranks::RankGroup& ranks) {
  return ranks::share_batch(ranks.rank(), ranks.ranks(),
                            std::min<std::int64_t>(recipe.batch, data.train_images), recipe.accumulate);
}

}  // namespace abl::tasks
