// SPDX-License-Identifier: Apache-2.0
// How a training becomes one of several ranks'.
#include "models/state.h"
#include "models/sync_batch_norm.h"
#include "worker/trainer/training.h"

namespace abl::trainer {
namespace {

std::vector<torch::Tensor> values_of(const std::map<std::string, torch::Tensor>& tensors) {
  std::vector<torch::Tensor> values;
  for (const auto& [name, tensor] : tensors) values.push_back(tensor);
  return values;
}

}  // namespace

/// All begin with what the first rank has: it alone reads a checkpoint.
void Training::join_ranks() {
  gradients_.emplace(*model_, options_.ranks);
  if (ranks_.alone()) return;
  auto tensors = optimiser_->state();
  tensors.merge(models::state_of(*model_));
  if (average_) tensors.merge(average_->state());
  if (scaler_) tensors.merge(scaler_->state());
  auto progress = torch::tensor({done_, evaluated_});
  ranks_.share(values_of(tensors));
  ranks_.share({progress});
  done_ = progress[0].item<std::int64_t>(), evaluated_ = progress[1].item<std::int64_t>();
  if (!states_.random.defined()) {
    states_ = new_states(options_.trial.seed, ranks_.ranks(), done_);
    if (ranks_.first()) states_.sums[0].copy_(sums());
  }
  ranks_.share({states_.random, states_.sums});
  draw_as(states_, ranks_, device_, options_.trial.seed, done_);
  const auto own = states_.sums[ranks_.rank()];
  loss_sum_.copy_(own[0]), correct_.copy_(own[1]);
  seen_ = static_cast<std::int64_t>(own[2].item<double>());
  if (options_.trial.recipe.sync_batch_norm)
    models::synchronise_batch_norms(*model_, [this](torch::Tensor& tensor) { ranks_.sum(tensor); });
}

torch::Tensor Training::sums() const {
  return torch::stack({loss_sum_, correct_, torch::full_like(loss_sum_, static_cast<double>(seen_))});
}

}  // namespace abl::trainer
