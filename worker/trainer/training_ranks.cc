// SPDX-License-Identifier: Apache-2.0
// How a training becomes one of several ranks'.
#include <cmath>

#include "models/sync_batch_norm.h"
#include "worker/trainer/training.h"

namespace abl::trainer {

/// All begin with what the first rank has: it alone reads a checkpoint.
void Training::join_ranks() {
  if (ranks_.alone()) return;
  auto progress = torch::tensor(
      {static_cast<double>(done_), static_cast<double>(evaluated_), best_.value_or(NAN)}, torch::kFloat64);
  learner_->agree(ranks_);
  ranks_.share({progress});
  done_ = progress[0].item<std::int64_t>(), evaluated_ = progress[1].item<std::int64_t>();
  if (const auto best = progress[2].item<double>(); !std::isnan(best)) best_ = best;
  if (!states_.random.defined()) {
    states_ = new_states(options_.trial.seed, ranks_.ranks(), done_);
    if (ranks_.first()) states_.sums[0].copy_(sums());
  }
  ranks_.share({states_.random, states_.sums});
  draw_as(states_, ranks_);
  const auto own = states_.sums[ranks_.rank()];
  learner_->loss_sum().copy_(own[0]), learner_->correct().copy_(own[1]);
  seen_ = static_cast<std::int64_t>(own[2].item<double>());
  if (options_.trial.recipe.sync_batch_norm)
    models::synchronise_batch_norms(learner_->model(), [this](torch::Tensor& tensor) { ranks_.sum(tensor); });
}

torch::Tensor Training::sums() const {
  const auto& loss = learner_->loss_sum();
  return torch::stack({loss, learner_->correct(), torch::full_like(loss, static_cast<double>(seen_))});
}

}  // namespace abl::trainer
