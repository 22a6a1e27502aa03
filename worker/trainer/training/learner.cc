// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/learner.h"

#include <torch/utils.h>

namespace abl::training {
namespace {

constexpr const char* kModel = "model.";

}  // namespace

torch::ScalarType type_of_weights(const config::RecipeConfig& recipe) {
  switch (recipe.precision) {
    case config::Precision::kBFloat16:
      return torch::kBFloat16;
    case config::Precision::kFloat16:  // by autocast
    case config::Precision::kFloat32:
      break;
  }
  return torch::kFloat;
}

Learner::Learner(std::shared_ptr<torch::nn::Module> model, std::shared_ptr<torch::nn::Module> average,
                 const config::RecipeConfig& recipe, torch::Device device,
                 std::shared_ptr<ranks::RankGroup> ranks, std::unique_ptr<StepGraph> graph)
    : recipe_{recipe},
      model_{std::move(model)},
      weights_{model_, type_of_weights(recipe)},
      gradients_{*model_, std::move(ranks)},
      optimiser_{make_optimiser(*model_, weights_.weights(), recipe)},
      graph_{std::move(graph)},
      lr_{new_rate(device)},
      loss_sum_{torch::zeros({}, torch::TensorOptions{torch::kFloat64}.device(device))},
      correct_{torch::zeros_like(loss_sum_)},
      finite_steps_{torch::zeros_like(loss_sum_)},
      gradients_sum_{torch::zeros({3}, loss_sum_.options())} {
  if (average) average_.emplace(std::move(average), weights_.state(), recipe.ema);
  if (recipe.precision == config::Precision::kFloat16) scaler_.emplace(device);
}

void Learner::add_gradients(const tasks::PartLoss& loss, const ranks::BatchShare::Part& part,
                            bool for_all_ranks) {
  const auto weighted = part.weight == 1 ? loss.mean : loss.mean * part.weight;
  gradients_.backward(scaler_ ? scaler_->scale(weighted) : weighted, for_all_ranks);
  const torch::NoGradGuard no_grad;
  loss_sum_ += loss.mean.detach().to(torch::kFloat64) * part.size;
  if (loss.correct.defined()) correct_ += loss.correct;
}

void Learner::take_step(const tasks::Work& work, const tasks::Work::Inputs& inputs, const Parts& parts) {
  // gradients in bfloat16 are taken into float32 after each part, where the ranks' mean is made of them then
  const bool widened = weights_.are_copies() && parts.size() > 1;
  for (const auto& part : parts) {
    const bool is_last = part.first + part.size == work.images;
    add_gradients(work.loss(inputs, part.first, part.size), part, is_last && !widened);
    if (widened || is_last) weights_.take_gradients();
  }
  if (widened) gradients_.average(gradients_of(weights_.weights()));
  drop_gradients(work.frozen);
  const auto overflow = scaler_ ? scaler_->unscale(weights_.weights()) : torch::Tensor{};
  const auto norm = gradient_norm(weights_.weights());
  note(norm, overflow);
  if (recipe_.clip_norm > 0) clip(norm);
  optimiser_->step(lr_, overflow);
  weights_.publish();
  if (average_) average_->follow(weights_.state());
  if (work.after) work.after(weights_.state());
  finite_steps_ += (loss_sum_ * 0).eq_(0);  // once it is not finite it stays so
}

/// After all ranks have them: which gradients travel does not change from step to step.
void Learner::drop_gradients(const std::set<std::string>& names) {
  if (names.empty()) return;
  for (const auto& [name, weight] : weights_.weights())
    if (names.contains(name)) weight.mutable_grad() = torch::Tensor{};
}

void Learner::clip(const torch::Tensor& norm) {
  switch (recipe_.clip_rule) {
    case config::ClipRule::kGlobal:
      return clip_gradients(weights_.weights(), norm, recipe_.clip_norm);
    case config::ClipRule::kEachTensor:
      return clip_each_gradient(weights_.weights(), recipe_.clip_norm);
  }
}

void Learner::note(const torch::Tensor& norm, const torch::Tensor& overflow) {
  const torch::NoGradGuard no_grad;
  const auto wide = norm.to(torch::kFloat64), counts = norm.isfinite().to(torch::kFloat64);
  const auto skipped = overflow.defined() ? overflow.to(torch::kFloat64) : torch::zeros_like(counts);
  gradients_sum_ += torch::stack({wide.nan_to_num(0, 0, 0), counts, skipped});
}

void Learner::step(const tasks::Work& work, double lr, const std::vector<ranks::BatchShare::Part>& parts) {
  model_->train();
  lr_.fill_(lr);
  if (!graph_ || work.inputs.empty()) return take_step(work, work.inputs, parts);
  graph_->run(work.inputs,
              [this, work, parts](const tasks::Work::Inputs& inputs) { take_step(work, inputs, parts); });
}

void Learner::agree(ranks::RankGroup& ranks) {
  std::vector<torch::Tensor> values;
  for (const auto& [name, tensor] : state()) values.push_back(tensor);
  ranks.share(values);
  weights_.publish();
}

std::map<std::string, torch::Tensor> Learner::state() const {
  auto state = optimiser_->state();
  for (const auto& [name, tensor] : weights_.state()) state[kModel + name] = tensor;
  if (average_) state.merge(average_->state());
  if (scaler_) state.merge(scaler_->state());
  return state;
}

void Learner::load(const std::map<std::string, torch::Tensor>& state) {
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, tensor] : state)
    if (name.starts_with(kModel)) weights[name.substr(std::string_view{kModel}.size())] = tensor;
  weights_.load(weights);
  load_optimiser(*optimiser_, state);
  if (average_) average_->load(state);
  if (scaler_)
    for (auto& [name, tensor] : scaler_->state()) tensor.copy_(state.at(name));
}

}  // namespace abl::training
