// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/evaluation.h"

#include <ATen/autocast_mode.h>

#include <algorithm>

#include "worker/trainer/data/loader.h"
#include "worker/trainer/data/transform.h"
#include "worker/trainer/ranks/batch_share.h"

namespace abl::trainer {

torch::Tensor to_input(const torch::Tensor& bytes, torch::Device device) {
  const auto options = torch::TensorOptions{torch::kFloat32}.device(device);
  const auto mean = torch::tensor({0.485f, 0.456f, 0.406f}, options),
             deviation = torch::tensor({0.229f, 0.224f, 0.225f}, options);
  const auto scaled =
      bytes.to(device, /*non_blocking=*/true).to(torch::kFloat32).mul_(1.f / 255).sub_(mean).div_(deviation);
  return scaled.permute({0, 3, 1, 2}).contiguous();  // [B, 3, S, S]
}

Precision::Precision(const config::RecipeConfig& recipe, torch::Device device)
    : lowered_{recipe.precision != "fp32"}, device_{device.type()} {
  if (!lowered_) return;
  at::autocast::set_autocast_dtype(device_, recipe.precision == "fp16" ? torch::kHalf : torch::kBFloat16);
  at::autocast::set_autocast_enabled(device_, true);
}

Precision::~Precision() {
  if (!lowered_) return;
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, false);
}

std::optional<Evaluation> evaluate(models::Classifier& model, const ImageSource& images,
                                   const config::TrialConfig& trial, torch::Device device, int loader_threads,
                                   RankGroup& ranks, const std::atomic<bool>& stop) {
  const torch::InferenceMode inference;
  const auto& [recipe, data] = std::tie(trial.recipe, trial.data);
  const int size = data.image_size, resize = recipe.eval_resize > 0 ? recipe.eval_resize : size;
  const std::int64_t batches = (images.size() + recipe.batch - 1) / recipe.batch;
  Loader loader{
      0, batches, loader_threads, 2 * loader_threads, [&](std::int64_t number) {
        const auto first = static_cast<std::uint32_t>(number * recipe.batch);
        std::vector<std::uint32_t> indices;
        for (const auto place : places_of(ranks.rank(), ranks.ranks(),
                                          std::min<std::int64_t>(recipe.batch, images.size() - first)))
          indices.push_back(first + static_cast<std::uint32_t>(place));
        return collate(indices, 0, size, [&](std::uint32_t index, std::size_t) -> std::optional<Prepared> {
          const auto sample = images.load(index);
          if (!sample) return std::nullopt;
          return Prepared{.view = {.image = centre(sample->image, resize, size, interpolation_of(recipe))},
                          .label = sample->label};
        });
      }};
  model.eval();
  Evaluation result;
  auto totals =
      torch::zeros({4}, torch::TensorOptions{torch::kFloat64}.device(device));  // loss, top-1, top-5, images
  const std::int64_t k = std::min(5, data.classes);
  while (auto batch = loader.next()) {
    if (ranks.as_first(stop)) return std::nullopt;
    if (batch->labels.numel() == 0) continue;
    const auto labels = batch->labels.to(device);
    torch::Tensor logits;
    {
      const Precision precision{recipe, device};
      logits = model.forward(to_input(batch->images, device));
    }
    logits = logits.to(torch::kFloat32);
    const auto hit = std::get<1>(logits.topk(k, 1)).eq(labels.unsqueeze(1));  // [B, k]
    const auto loss = torch::nn::functional::cross_entropy(
        logits, labels, torch::nn::functional::CrossEntropyFuncOptions{}.reduction(torch::kSum));
    totals += torch::stack({loss.to(torch::kFloat64), hit.narrow(1, 0, 1).sum().to(torch::kFloat64),
                            hit.sum().to(torch::kFloat64),
                            torch::full({}, static_cast<double>(labels.numel()), totals.options())});
  }
  ranks.sum(totals);
  const auto values = totals.cpu();
  result.images = static_cast<std::int64_t>(values[3].item<double>());
  const auto share = [&](int i) {
    return values[i].item<double>() / static_cast<double>(std::max<std::int64_t>(1, result.images));
  };
  result.loss = share(0), result.top1 = 100 * share(1), result.top5 = 100 * share(2);
  return result;
}

}  // namespace abl::trainer
