// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/evaluation.h"

#include <algorithm>

#include "worker/trainer/data/loader.h"
#include "worker/trainer/data/transform.h"
#include "worker/trainer/device/batch_input.h"
#include "worker/trainer/precision.h"
#include "worker/trainer/ranks/batch_share.h"

namespace abl::trainer {

std::optional<Evaluation> evaluate(models::Classifier& model, const ImageSource& images,
                                   const config::TrialConfig& trial, torch::Device device, int loader_threads,
                                   RankGroup& ranks, const std::atomic<bool>& stop,
                                   const std::function<void(std::int64_t images)>& progress) {
  const torch::InferenceMode inference;
  const auto& [recipe, data] = std::tie(trial.recipe, trial.data);
  const std::int64_t batches = (images.size() + recipe.batch - 1) / recipe.batch;
  Loader loader{
      0, batches, loader_threads, 2 * loader_threads, [&](std::int64_t number) {
        const auto first = static_cast<std::uint32_t>(number * recipe.batch);
        std::vector<std::uint32_t> indices;
        for (const auto place : places_of(ranks.rank(), ranks.ranks(),
                                          std::min<std::int64_t>(recipe.batch, images.size() - first)))
          indices.push_back(first + static_cast<std::uint32_t>(place));
        return collate(indices,
                       {.replace_among = 0, .image_size = data.image_size, .pinned = device.is_cuda()},
                       [&](std::uint32_t index, std::size_t) {
                         return centre_of(images, index, recipe, data.image_size);
                       });
      }};
  const BatchInput input{device};
  model.eval();
  Evaluation result;
  auto totals =
      torch::zeros({4}, torch::TensorOptions{torch::kFloat64}.device(device));  // loss, top-1, top-5, images
  const std::int64_t k = std::min(5, data.classes);
  while (auto batch = loader.next()) {
    if (ranks.as_first(stop)) return std::nullopt;
    if (batch->labels.numel() == 0) continue;
    const auto labels = input.labels(*batch);
    const auto logits = logits_of(model, input.images(*batch), recipe);
    const auto hit = std::get<1>(logits.topk(k, 1)).eq(labels.unsqueeze(1));  // [B, k]
    const auto loss = torch::nn::functional::cross_entropy(
        logits, labels, torch::nn::functional::CrossEntropyFuncOptions{}.reduction(torch::kSum));
    totals += torch::stack({loss.to(torch::kFloat64), hit.narrow(1, 0, 1).sum().to(torch::kFloat64),
                            hit.sum().to(torch::kFloat64),
                            torch::full({}, static_cast<double>(labels.numel()), totals.options())});
    if (progress) progress(labels.numel());
  }
  ranks.sum(totals);
  const auto values = totals.cpu();
  result.images = static_cast<std::int64_t>(values[3].item<double>());
  const auto mean = [&](int i, double unit) {
    return unit * values[i].item<double>() / static_cast<double>(std::max<std::int64_t>(1, result.images));
  };
  result.loss = mean(0, 1), result.top1 = mean(1, 100), result.top5 = mean(2, 100);
  return result;
}

}  // namespace abl::trainer
