// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/classify/evaluation.h"

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "data/transform.h"
#include "protocol/metrics.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/loader.h"

namespace abl::tasks {

namespace {

std::int64_t share_of(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

/// Of a batch, at most `most` images at a time. Shape: [B, classes].
torch::Tensor logits_of_batch(models::Classifier& model, const BatchInput& input, const Batch& batch,
                              const config::RecipeConfig& recipe, std::int64_t most) {
  const auto size = batch.labels.numel();
  std::vector<torch::Tensor> parts;
  for (std::int64_t first = 0; first < size; first += most)
    parts.push_back(
        device::logits_of(model, input.images(batch.narrow(first, std::min(most, size - first))), recipe));
  return parts.size() == 1 ? parts[0] : torch::cat(parts);
}

}  // namespace

std::map<std::string, double> Evaluation::values(const std::string& split) const {
  namespace metric = protocol::metric;
  return {{metric::of(split, metric::kLoss), loss},
          {metric::of(split, metric::kTop1), top1},
          {metric::of(split, metric::kTop5), top5}};
}

void expect_finite(const std::map<std::string, double>& values, const std::string& where) {
  for (const auto& [name, value] : values)
    if (!std::isfinite(value))
      throw Error{Code::kAborted, fmt::format("{} is not finite {}: it is {}", name, where, value)};
}

std::optional<Evaluation> evaluate(models::Classifier& model, const data::ImageSource& images,
                                   const config::TrialConfig& trial, torch::Device device, int loader_threads,
                                   ranks::RankGroup& ranks, const std::atomic<bool>& stop,
                                   const std::function<void(std::int64_t images)>& progress) {
  const torch::InferenceMode inference;
  const auto& [recipe, data] = std::tie(trial.recipe, trial.data);
  const std::int64_t batches = share_of(images.size(), recipe.batch);
  const auto places = [&](std::int64_t first) {
    return ranks::places_of(ranks.rank(), ranks.ranks(),
                            std::min<std::int64_t>(recipe.batch, images.size() - first));
  };
  const auto own = static_cast<std::int64_t>(places(0).size());
  const Collation collation{.replace_among = 0, .image_size = data.image_size, .pinned = device.is_cuda()};
  Loader loader{0,
                batches,
                {.threads = loader_threads,
                 .ahead = batches_ahead(own, data.image_size, loader_threads),
                 .collation = collation},
                [&](std::int64_t number) {
                  const auto first = static_cast<std::uint32_t>(number * recipe.batch);
                  BatchPlan plan;
                  for (const auto place : places(first))
                    plan.indices.push_back(first + static_cast<std::uint32_t>(place));
                  plan.prepare = [&](std::uint32_t index, std::size_t) {
                    return data::centre_of(images, index, recipe, data.image_size);
                  };
                  return plan;
                }};
  const std::int64_t most = std::max<std::int64_t>(1, share_of(own, recipe.accumulate));
  const BatchInput input{device, data};
  model.eval();
  Evaluation result;
  auto totals =
      torch::zeros({4}, torch::TensorOptions{torch::kFloat64}.device(device));  // loss, top-1, top-5, images
  const std::int64_t k = std::min(5, data.classes);
  while (auto batch = loader.next()) {
    if (ranks.as_first(stop)) return std::nullopt;
    if (batch->labels.numel() == 0) continue;
    const auto labels = input.labels(*batch);
    const auto logits = logits_of_batch(model, input, *batch, recipe, most);
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

}  // namespace abl::tasks
