// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/segment/segmentation.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <span>
#include <utility>

#include "images/pillow_transform.h"
#include "models/dense/segmentation/heads.h"
#include "models/dense/segmentation/inference.h"
#include "models/dense/segmentation/pixel_loss.h"
#include "protocol/metrics.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/tasks/dense/draw.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::tasks {
namespace {

torch::Tensor bytes_of(const std::uint8_t* first, torch::IntArrayRef shape) {
  return torch::from_blob(const_cast<std::uint8_t*>(first), shape, torch::kUInt8);
}

/// The first pictures of some of one size. Shape: [count, H, W, 3], bytes.
torch::Tensor images_of(const std::vector<images::Annotated>& pictures, std::int64_t count, bool pinned) {
  const auto& first = pictures.front().image;
  auto all = torch::empty({count, first.height, first.width, 3},
                          torch::TensorOptions{torch::kUInt8}.pinned_memory(pinned));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& image = pictures[static_cast<std::size_t>(i)].image;
    all[i].copy_(bytes_of(image.pixels.data(), {image.height, image.width, 3}));
  }
  return all;
}

/// Their labels. Shape: [count, H, W], bytes.
torch::Tensor labels_of(const std::vector<images::Annotated>& pictures, std::int64_t count, bool pinned) {
  const auto& first = pictures.front().labels;
  auto all = torch::empty({count, first.height, first.width},
                          torch::TensorOptions{torch::kUInt8}.pinned_memory(pinned));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& labels = pictures[static_cast<std::size_t>(i)].labels;
    all[i].copy_(bytes_of(labels.labels.data(), {labels.height, labels.width}));
  }
  return all;
}

constexpr std::int64_t kShown = 4;  // pictures of an evaluation

/// In percent. Shape: [class, iou/accuracy/share of the pixels].
probes::Array of_classes(const scoring::SegmentationScores& scores, const std::vector<std::string>& classes) {
  double all = 0;
  for (const auto& one : scores.classes) all += static_cast<double>(one.pixels);
  auto values = torch::empty({static_cast<std::int64_t>(classes.size()), 3}, torch::kFloat32);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto& [accuracy, intersection, pixels] = scores.classes[i];
    const double share = static_cast<double>(pixels) / std::max(1.0, all);
    for (const auto& [place, score] : {std::pair{0, intersection}, {1, accuracy}, {2, share}})
      values[static_cast<std::int64_t>(i)][place] = 100 * score;
  }
  return {.axes = {{"class", classes}, {"percent", {"IoU", "accuracy", "of all pixels"}}}, .values = values};
}

}  // namespace

Segmentation::Segmentation(const config::TrialConfig& trial, SegmentationOptions options,
                           data::AnnotatedSet set, TaskPlace place)
    : trial_{trial},
      options_{std::move(options)},
      set_{std::move(set)},
      place_{std::move(place)},
      data_{.train_images = set_.train->size(),
            .val_images = set_.val->size(),
            .fingerprint = set_.fingerprint,
            .passed_over = set_.passed_over},
      share_{share_of(trial.recipe, data_, *place_.ranks)},
      order_{std::make_unique<data::EpochOrder>(trial.seed, data_.train_images)},
      input_{place_.device, trial.data} {}

std::shared_ptr<torch::nn::Module> Segmentation::new_model() const {
  return std::make_shared<models::SegmenterImpl>(
      models::build_feature_maps(training_options(trial_), options_.maps), options_.segmenter);
}

PicturePlan Segmentation::plan_of(std::int64_t step) const {
  const auto epoch = static_cast<std::uint64_t>(step / steps_of_an_epoch_);
  const auto order = order_->of(epoch);
  const auto first = step % steps_of_an_epoch_ * share_.batch;
  PicturePlan plan{.indices = {}, .prepare = {}, .replace_among = data_.train_images};
  for (const auto place : share_.places)
    plan.indices.push_back(order->at(static_cast<std::size_t>(first + place)));
  plan.prepare = [this, epoch](std::uint32_t index, std::size_t) -> std::optional<images::Annotated> {
    const auto picture = set_.train->load(index);
    if (!picture) return std::nullopt;
    images::RandomStream random{trial_.seed, images::Purpose::kAugmentation, {epoch, index}};
    return images::segmentation_view(*picture, options_.view, random);
  };
  return plan;
}

void Segmentation::load(const Steps& steps) {
  loader_.reset();
  steps_of_an_epoch_ = steps.of_an_epoch;
  const int side = std::max(options_.view.width, options_.view.height);
  loader_.emplace(
      steps.first, steps.last - steps.first, place_.loader_threads,
      batches_ahead(static_cast<std::int64_t>(share_.places.size()), side, place_.loader_threads),
      [this](std::int64_t number) { return std::make_shared<PicturesInMaking>(plan_of(number)); });
}

bool Segmentation::next() {
  batch_ = loader_->next();
  return batch_.has_value();
}

Work Segmentation::work(torch::nn::Module& model, std::int64_t, bool halved) {
  const auto all = static_cast<std::int64_t>(batch_->size());
  const auto count = halved ? std::max<std::int64_t>(1, all / 2) : all;
  const bool pinned = place_.device.is_cuda();
  const auto images =
      input_.images({.images = images_of(*batch_, count, pinned), .labels = {}, .erased = {}});
  const auto labels =
      labels_of(*batch_, count, pinned).to(place_.device, /*non_blocking=*/true).to(torch::kInt64);
  auto& segmenter = dynamic_cast<models::SegmenterImpl&>(model);
  return {
      .images = count,
      .inputs = {images, labels},
      .loss = [this, &segmenter](const Work::Inputs& inputs, std::int64_t first, std::int64_t part) {
        models::SegmenterAnswers answers;
        device::compute(segmenter, inputs[0].narrow(0, first, part), trial_.recipe,
                        [&](const torch::Tensor& lowered) { answers = segmenter.answer(lowered); });
        return PartLoss{.mean = models::segmentation_losses(answers, inputs[1].narrow(0, first, part)).total};
      }};
}

std::optional<std::map<std::string, double>> Segmentation::evaluate(
    torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  const torch::InferenceMode inference;
  const auto classes = static_cast<int>(options_.segmenter.classes);
  auto& segmenter = dynamic_cast<models::SegmenterImpl&>(model);
  segmenter.eval();
  auto& ranks = *place_.ranks;
  const auto val = static_cast<std::int64_t>(set_.val->size());
  // of each rank's share, so that all ranks come to the same number of batches
  const auto batches = (val + ranks.ranks() - 1) / ranks.ranks();
  LoaderOf<PicturesInMaking> loader{
      0, batches, place_.loader_threads, 2 * place_.loader_threads + 2, [&](std::int64_t number) {
        PicturePlan plan;
        if (const auto index = number * ranks.ranks() + ranks.rank(); index < val)
          plan.indices.push_back(static_cast<std::uint32_t>(index));
        plan.prepare = [&](std::uint32_t index, std::size_t) -> std::optional<images::Annotated> {
          auto picture = set_.val->load(index);
          if (picture) picture = evaluated(std::move(*picture));
          return picture;
        };
        return std::make_shared<PicturesInMaking>(std::move(plan));
      }};
  scoring::ConfusionMatrix told{classes};
  auto loss =
      torch::zeros({2}, torch::TensorOptions{torch::kFloat64}.device(place_.device));  // sum, pictures
  predictions_.emplace();
  for (std::int64_t number = 0; const auto pictures = loader.next(); ++number) {
    if (ranks.as_first(stop)) return std::nullopt;
    if (pictures->empty()) continue;
    const bool pinned = place_.device.is_cuda();
    const auto labels = labels_of(*pictures, 1, pinned);
    const auto told_logits = models::resize_map(
        logits(segmenter,
               input_.images({.images = images_of(*pictures, 1, pinned), .labels = {}, .erased = {}})),
        labels.size(1), labels.size(2), /*align_corners=*/false);
    const auto there = labels.to(place_.device).to(torch::kInt64);
    loss += torch::stack(
        {models::pixel_loss(told_logits, there).to(torch::kFloat64), torch::ones({}, loss.options())});
    const auto best = told_logits.argmax(1).to(torch::kUInt8).cpu().contiguous();
    const auto size = static_cast<std::size_t>(best.numel());
    told.add({best.const_data_ptr<std::uint8_t>(), size}, {labels.const_data_ptr<std::uint8_t>(), size});
    if (progress) progress(1);
  }
  ranks.sum(loss);
  const auto scores = summed(told).scores();
  predictions_->arrays = {{"classes", of_classes(scores, set_.labels)}, {"legend", legend(set_.labels)}};
  const auto sums = loss.cpu();
  const auto name = [&](const char* metric) { return protocol::metric::of(split, metric); };
  return std::map<std::string, double>{
      {name(protocol::metric::kLoss), sums[0].item<double>() / std::max(1.0, sums[1].item<double>())},
      {name(protocol::metric::kMeanIntersection), 100 * scores.mean_intersection},
      {name(protocol::metric::kMeanAccuracy), 100 * scores.mean_accuracy},
      {name(protocol::metric::kPixelAccuracy), 100 * scores.accuracy}};
}

void Segmentation::show(std::int64_t number, const images::Annotated& picture,
                        std::vector<std::uint8_t> told) {
  const auto& [width, height, labels] = picture.labels;
  if (number >= kShown) return;
  predictions_->pictures[fmt::format("{}", number + 1)] =
      side_by_side({images::resize(picture.image, width, height, images::Interpolation::kBilinear),
                    drawn(picture.labels), drawn({width, height, std::move(told)})});
}

/// The picture as the network sees it, its labels as they are.
images::Annotated Segmentation::evaluated(images::Annotated picture) const {
  const int side = options_.evaluated_side;
  if (side == 0) return picture;
  const auto [width, height] = images::size_within(picture.image.width, picture.image.height, 4 * side, side);
  if (width == picture.image.width && height == picture.image.height) return picture;
  picture.image = images::resize(picture.image, width, height, images::Interpolation::kBilinear);
  return picture;
}

/// Of the images' size, in float32.
torch::Tensor Segmentation::logits(models::SegmenterImpl& segmenter, const torch::Tensor& images) const {
  const models::WholeOptions whole{.multiple = options_.multiple};
  const std::int64_t window = options_.window, stride = std::max<std::int64_t>(1, 2 * window / 3);
  torch::Tensor logits;
  device::compute(segmenter, images, trial_.recipe, [&](const torch::Tensor& lowered) {
    const auto segment = [&](const torch::Tensor& of) { return segmenter.forward(of); };
    logits = window == 0 ? models::whole_logits(segment, lowered, whole)
                         : models::sliding_logits(segment, lowered,
                                                  {.rows = window,
                                                   .columns = window,
                                                   .row_stride = stride,
                                                   .column_stride = stride,
                                                   .whole = whole});
  });
  return logits.to(torch::kFloat);
}

/// Of all ranks.
scoring::ConfusionMatrix Segmentation::summed(const scoring::ConfusionMatrix& own) const {
  const std::int64_t classes = own.classes();
  auto counts = torch::empty({classes * classes}, torch::kFloat64);
  std::ranges::copy(own.counts(), counts.mutable_data_ptr<double>());
  auto there = counts.to(place_.device);
  place_.ranks->sum(there);
  const auto all = there.cpu();
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(classes * classes));
  std::ranges::transform(std::span{all.const_data_ptr<double>(), sums.size()}, sums.begin(),
                         [](double count) { return static_cast<std::uint64_t>(count); });
  return scoring::ConfusionMatrix{own.classes(), std::move(sums)};
}

}  // namespace abl::tasks
