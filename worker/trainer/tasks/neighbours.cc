// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/neighbours.h"

#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/transform.h"
#include "models/backbones/image_features.h"
#include "protocol/metrics.h"
#include "scoring/nearest_neighbours.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/tasks/batch.h"
#include "worker/trainer/tasks/loader.h"

namespace abl::tasks {
namespace {

namespace metric = protocol::metric;

struct VoteMetric {
  int neighbours;
  const char* name;
};
constexpr std::array kVotes{VoteMetric{10, metric::kKnn10}, VoteMetric{20, metric::kKnn20}};
constexpr std::int64_t kMostSimilarities = std::int64_t{1} << 25;  // held at once: 128 MiB

/// Some images, as their features say them.
struct Described {
  torch::Tensor features;  ///< [N, D], float32, at length 1
  torch::Tensor labels;    ///< [N], int64
};

std::int64_t rounded_up(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

/// Describes images, every rank its share, batch by batch.
class Describer {
 public:
  Describer(torch::nn::Module& backbone, const config::TrialConfig& trial, const TaskPlace& place,
            const std::atomic<bool>& stop, const std::function<void(std::int64_t images)>& progress)
      : backbone_{backbone},
        features_{dynamic_cast<models::ImageFeatures&>(backbone)},
        trial_{trial},
        place_{place},
        stop_{stop},
        progress_{progress},
        input_{place.device, trial.data} {}

  std::int64_t width() const { return features_.feature_width({}); }

  /// Hands `take` each batch of this rank's images among `indices`. Returns: false when it was stopped.
  bool operator()(const data::ImageSource& images, const std::vector<std::uint32_t>& indices,
                  const std::function<void(const Described&)>& take) {
    auto& ranks = *place_.ranks;
    const auto all = static_cast<std::int64_t>(indices.size());
    const auto own = rounded_up(all, ranks.ranks());  // of some ranks one fewer
    const auto batch = std::max<std::int64_t>(
        1, rounded_up(trial_.recipe.batch, std::int64_t{ranks.ranks()} * trial_.recipe.accumulate));
    const int side = trial_.data.image_size;
    Loader loader{0,
                  rounded_up(own, batch),
                  {.threads = place_.loader_threads,
                   .ahead = batches_ahead(batch, side, place_.loader_threads),
                   .collation = {.image_size = side, .pinned = place_.device.is_cuda()}},
                  [&](std::int64_t number) {
                    BatchPlan plan;
                    for (auto one = number * batch; one < std::min(own, (number + 1) * batch); ++one)
                      if (const auto at = one * ranks.ranks() + ranks.rank(); at < all)
                        plan.indices.push_back(indices[static_cast<std::size_t>(at)]);
                    plan.prepare = [&](std::uint32_t index, std::size_t) {
                      return data::centre_of(images, index, trial_.recipe, side);
                    };
                    return plan;
                  }};
    while (const auto made = loader.next()) {
      if (ranks.as_first(stop_)) return false;
      if (made->labels.numel() == 0) continue;
      take({.features = described(input_.images(*made)), .labels = input_.labels(*made)});
      if (progress_) progress_(made->labels.numel());
    }
    return true;
  }

 private:
  torch::Tensor described(const torch::Tensor& images) const {
    torch::Tensor features;
    device::compute(backbone_, images, trial_.recipe, [&](const torch::Tensor& lowered) {
      features = features_.features(lowered).to(torch::kFloat);
    });
    return features / features.norm(2, /*dim=*/{1}, /*keepdim=*/true).clamp_min(1e-12);
  }

  torch::nn::Module& backbone_;
  models::ImageFeatures& features_;
  const config::TrialConfig& trial_;
  const TaskPlace& place_;
  const std::atomic<bool>& stop_;
  const std::function<void(std::int64_t images)>& progress_;
  const BatchInput input_;
};

std::vector<std::uint32_t> chosen(std::uint32_t images, std::int64_t most) {
  std::vector<std::uint32_t> indices(images);
  std::iota(indices.begin(), indices.end(), 0U);
  if (most <= 0 || most >= images) return indices;
  indices = images::permutation(images, images::RandomStream{0, images::Purpose::kSubset});
  indices.resize(static_cast<std::size_t>(most));
  return indices;
}

/// Those images of a split, of all ranks. Held once: where all can be read, features lie where they stay.
/// Nothing when it was stopped.
std::optional<Described> gathered(Describer& describe, const data::ImageSource& images,
                                  const std::vector<std::uint32_t>& indices, const TaskPlace& place) {
  auto& ranks = *place.ranks;
  const auto all = static_cast<std::int64_t>(indices.size());
  const auto floats = torch::TensorOptions{torch::kFloat}.device(place.device);
  Described bank{.features = torch::zeros({all, describe.width()}, floats),
                 .labels = torch::full({all}, ranks.first() ? -1 : 0, floats.dtype(torch::kLong))};
  const auto own = [&](const torch::Tensor& tensor) {
    return tensor.slice(0, std::min<std::int64_t>(ranks.rank(), all), all, ranks.ranks());
  };
  const auto features = own(bank.features), labels = own(bank.labels);
  std::int64_t at = 0;
  if (!describe(images, indices, [&](const Described& some) {
        const auto count = some.labels.size(0);
        features.narrow(0, at, count).copy_(some.features);
        labels.narrow(0, at, count).add_(some.labels + 1);  // the sum over ranks is -1 where no image is
        at += count;
      }))
    return std::nullopt;
  for (auto* tensor : {&bank.features, &bank.labels}) ranks.sum(*tensor);
  const auto is_there = bank.labels.ge(0);
  if (is_there.all().item<bool>()) return bank;
  return Described{.features = bank.features.index({is_there}), .labels = bank.labels.index({is_there})};
}

/// Counts the images whose class their neighbours vote for.
class Votes {
 public:
  Votes(Described bank, int classes) : bank_{std::move(bank)}, classes_{classes} {
    if (bank_.labels.numel() == 0) throw Error{Code::kDataLoss, "data: no readable images"};
    const auto labels = bank_.labels.cpu();
    const auto* first = labels.const_data_ptr<std::int64_t>();
    labels_.assign(first, first + labels.numel());
  }

  void add(const Described& images) {
    const auto most = std::max<std::int64_t>(1, kMostSimilarities / bank_.features.size(0));
    const auto features = images.features.split(most), labels = images.labels.split(most);
    for (std::size_t i = 0; i < features.size(); ++i) add(features[i], labels[i]);
  }

  /// Images that were added, those of them that have a NaN, and for each of kVotes the hits. [2 + votes]
  torch::Tensor counts() const {
    return torch::tensor(std::vector<double>(counts_.begin(), counts_.end()), torch::kFloat64);
  }

 private:
  void add(const torch::Tensor& features, const torch::Tensor& labels) {
    const auto k = std::min<std::int64_t>(kVotes.back().neighbours, bank_.features.size(0));
    const auto [similarities, nearest] = features.matmul(bank_.features.mT()).topk(k, 1);
    const auto cosines = similarities.cpu(), neighbours = nearest.cpu(), own = labels.cpu();
    for (std::int64_t image = 0; image < own.numel(); ++image) {
      const std::span row{cosines[image].const_data_ptr<float>(), static_cast<std::size_t>(k)};
      ++counts_[0];
      if (!std::ranges::all_of(row, [](float cosine) { return std::isfinite(cosine); })) {
        ++counts_[1];
        continue;
      }
      std::vector<int> classes;
      for (const auto* at = neighbours[image].const_data_ptr<std::int64_t>(); classes.size() < row.size();
           ++at)
        classes.push_back(labels_[static_cast<std::size_t>(*at)]);
      for (std::size_t vote = 0; vote < kVotes.size(); ++vote)
        counts_[2 + vote] += own[image].item<int>() == winner(row, classes, kVotes[vote].neighbours);
    }
  }
  int winner(std::span<const float> cosines, const std::vector<int>& classes, int neighbours) const {
    return scoring::vote(
               cosines, classes,
               {.neighbours = std::min(neighbours, static_cast<int>(cosines.size())), .classes = classes_})
        .front();
  }

  const Described bank_;
  const int classes_;
  std::vector<int> labels_;
  std::array<double, 2 + kVotes.size()> counts_{};
};

}  // namespace

std::int64_t described_images(const data::DataSet& set, const NeighbourBank& bank) {
  const std::int64_t all = set.train->size();
  return set.val->size() + (bank.images > 0 ? std::min(bank.images, all) : all);
}

std::optional<std::map<std::string, double>> judge_by_neighbours(
    torch::nn::Module& backbone, const data::DataSet& set, const NeighbourBank& bank,
    const config::TrialConfig& trial, const TaskPlace& place, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  const torch::InferenceMode inference;
  backbone.eval();
  Describer describe{backbone, trial, place, stop, progress};
  const auto indices = chosen(set.train->size(), bank.images);
  auto described = gathered(describe, *set.train, indices, place);
  if (!described) return std::nullopt;
  Votes votes{std::move(*described), trial.data.classes};

  auto moments =
      torch::zeros({2, describe.width()}, torch::TensorOptions{torch::kFloat64}.device(place.device));
  const auto look = [&](const Described& some) {
    const auto wide = some.features.to(torch::kFloat64);
    moments += torch::stack({wide.sum(0), wide.square().sum(0)});
    votes.add(some);
  };
  if (!describe(*set.val, chosen(set.val->size(), 0), look)) return std::nullopt;
  auto counts = votes.counts().to(place.device);
  for (auto* sums : {&moments, &counts}) place.ranks->sum(*sums);
  const auto all = counts.cpu();
  const auto number = [&](std::size_t i) { return all[static_cast<std::int64_t>(i)].item<double>(); };
  const double images = std::max(1.0, number(0));
  const auto mean = moments / images;
  const auto deviation = (mean[1] - mean[0].square()).clamp_min(0).sqrt().mean().item<double>();
  std::map<std::string, double> values{
      {metric::kFeatureStd, std::sqrt(static_cast<double>(describe.width())) * deviation}};
  const bool is_finite = number(1) == 0;
  for (std::size_t vote = 0; vote < kVotes.size(); ++vote)
    values[kVotes[vote].name] =
        is_finite ? 100 * number(2 + vote) / images : std::numeric_limits<double>::quiet_NaN();
  return values;
}

std::map<std::string, double> of_split(const std::string& split,
                                       const std::map<std::string, double>& values) {
  std::map<std::string, double> named;
  for (const auto& [name, value] : values) named.emplace(metric::of(split, name), value);
  return named;
}

}  // namespace abl::tasks
