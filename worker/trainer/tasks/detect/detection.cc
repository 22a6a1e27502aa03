// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/detection.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "images/pillow_transform.h"
#include "worker/trainer/device/precision.h"
#include "worker/trainer/tasks/dense/draw.h"
#include "worker/trainer/tasks/detect/box_choice.h"
#include "worker/trainer/tasks/detect/detection_batch.h"
#include "worker/trainer/tasks/model_factory.h"

namespace abl::tasks {
namespace {

using View = decltype(DetectionOptions::view);

struct ViewOf {
  images::Annotated picture;
  images::RandomStream& random;
  images::Annotated operator()(const images::LargeScaleJitter& view) {
    return images::large_scale_jitter(std::move(picture), view, random);
  }
  images::Annotated operator()(const images::MultiScale& view) {
    return images::multi_scale(std::move(picture), view, random);
  }
};

/// Pixels, at most, of a side of what comes of a view: for how much is made ahead.
int largest_side(const View& view) {
  if (const auto* jitter = std::get_if<images::LargeScaleJitter>(&view))
    return std::max(jitter->width, jitter->height);
  const auto& scales = std::get<images::MultiScale>(view);
  return std::max(scales.longest, scales.sides.empty() ? 0 : std::ranges::max(scales.sides));
}

void expect_masks(const images::Annotated& picture, const std::string& name) {
  for (const auto& thing : picture.instances)
    if (!thing.crowd && !thing.has_mask())
      throw Error{Code::kInvalidArgument, fmt::format("{}: a thing has no mask to learn", name)};
}

/// Pictures that a view makes of one size need no order of their own: none of them is said to lie.
std::vector<bool> kinds(const View& view, const data::AnnotatedSource& pictures) {
  if (std::holds_alternative<images::LargeScaleJitter>(view)) return std::vector<bool>(pictures.size());
  return lying(pictures);
}

}  // namespace

Detection::Detection(const config::TrialConfig& trial, DetectionOptions options, data::AnnotatedSet set,
                     TaskPlace place)
    : trial_{trial},
      options_{std::move(options)},
      set_{std::move(set)},
      place_{std::move(place)},
      data_{.train_images = set_.train->size(),
            .val_images = set_.val->size(),
            .fingerprint = set_.fingerprint,
            .passed_over = set_.passed_over},
      share_{share_of(trial.recipe, data_, *place_.ranks)},
      order_{trial.seed, kinds(options_.view, *set_.train), share_.batch},
      input_{place_.device, trial.data} {
  const auto classes = options_.detector.heads.classes;
  if (classes != static_cast<std::int64_t>(set_.categories.size()))
    throw Error{Code::kInvalidArgument, fmt::format("a detector of {} classes for data of {} categories",
                                                    classes, set_.categories.size())};
}

std::shared_ptr<torch::nn::Module> Detection::new_model() const {
  const auto maps = models::build_feature_maps(training_options(trial_), options_.maps);
  return std::make_shared<models::MaskRcnnImpl>(options_.detector,
                                                std::dynamic_pointer_cast<torch::nn::Module>(maps));
}

PicturePlan Detection::plan_of(std::int64_t step) {
  const auto epoch = static_cast<std::uint64_t>(step / steps_of_an_epoch_);
  const auto& order = order_.of(epoch);
  const auto first = step % steps_of_an_epoch_ * share_.batch;
  PicturePlan plan{.indices = {}, .prepare = {}, .replace_among = data_.train_images};
  for (const auto place : share_.places)
    plan.indices.push_back(order.at(static_cast<std::size_t>(first + place)));
  plan.prepare = [this, epoch](std::uint32_t index, std::size_t) -> std::optional<images::Annotated> {
    auto picture = set_.train->load(index);
    if (!picture) return std::nullopt;
    expect_masks(*picture, set_.train->name(index));
    images::RandomStream random{trial_.seed, images::Purpose::kAugmentation, {epoch, index}};
    return std::visit(ViewOf{std::move(*picture), random}, options_.view);
  };
  return plan;
}

void Detection::load(const Steps& steps) {
  loader_.reset();
  steps_of_an_epoch_ = steps.of_an_epoch;
  loader_.emplace(
      steps.first, steps.last - steps.first, place_.loader_threads,
      batches_ahead(static_cast<std::int64_t>(share_.places.size()), largest_side(options_.view),
                    place_.loader_threads),
      [this](std::int64_t number) { return std::make_shared<PicturesInMaking>(plan_of(number)); });
}

bool Detection::next() {
  batch_ = loader_->next();
  return batch_.has_value();
}

Work Detection::work(torch::nn::Module& model, std::int64_t step, bool halved) {
  const auto count = halved ? std::max<std::size_t>(1, batch_->size() / 2) : batch_->size();
  const auto pictures = std::span{*batch_}.first(count);
  auto batch = std::make_shared<DetectionBatch>(
      DetectionBatch{.images = padded_images(pictures, input_, place_.device), .targets = {}});
  for (const auto& picture : pictures) batch->targets.push_back(targets_of(picture, place_.device));
  auto& detector = dynamic_cast<models::MaskRcnnImpl&>(model);
  return {.images = static_cast<std::int64_t>(count),
          .inputs = {},  // how many boxes there are is another number in each step
          .loss = [this, &detector, batch, step](const Work::Inputs&, std::int64_t first, std::int64_t part) {
            const auto some = batch->narrow(first, part);
            const auto places = std::span{share_.places}.subspan(first, part);
            const auto choose = choice_of(trial_.seed, step, {places.begin(), places.end()});
            torch::Tensor sum;
            device::compute(detector, some.images.images, trial_.recipe, [&](const torch::Tensor& lowered) {
              sum = detector.losses({lowered, some.images.sizes}, some.targets, choose).sum();
            });
            return PartLoss{.mean = sum};
          }};
}

/// A picture of an evaluation: its image resized, the things in it as they are annotated.
std::optional<images::Annotated> Detection::shown(std::uint32_t index) const {
  auto picture = set_.val->load(index);
  if (!picture || options_.evaluation.shorter == 0) return picture;
  const auto size = images::size_by_shorter(picture->image.width, picture->image.height,
                                            options_.evaluation.shorter, options_.evaluation.longest);
  picture->image = images::resize(picture->image, size.width, size.height, images::Interpolation::kBilinear);
  return picture;
}

PictureMatches Detection::judged(models::MaskRcnnImpl& detector, const images::Annotated& picture,
                                 std::uint32_t index, const std::string& shown_as) {
  const auto batch = padded_images({&picture, 1}, input_, place_.device);
  models::Detections found;
  device::compute(detector, batch.images, trial_.recipe, [&](const torch::Tensor& lowered) {
    found = detector.detect({lowered, batch.sizes}).front();
  });
  const auto own = set_.val->extent(index);
  const auto things = in_own_size(found, batch.sizes.front(), {.height = own.height, .width = own.width});
  if (!shown_as.empty())
    predictions_->pictures[shown_as] =
        with_things(images::resize(picture.image, own.width, own.height, images::Interpolation::kBilinear),
                    picture.instances, things);
  return {.picture = index,
          .boxes = scoring::match(picture.instances, things, scoring::Regions::kBoxes),
          .masks = scoring::match(picture.instances, things, scoring::Regions::kMasks)};
}

std::optional<std::map<std::string, double>> Detection::evaluate(
    torch::nn::Module& model, const std::string& split, const std::atomic<bool>& stop,
    const std::function<void(std::int64_t images)>& progress) {
  const torch::InferenceMode inference;
  auto& detector = dynamic_cast<models::MaskRcnnImpl&>(model);
  detector.eval();
  auto& ranks = *place_.ranks;
  const auto val = static_cast<std::int64_t>(set_.val->size());
  const auto of_this_rank = [&](std::int64_t number) { return number * ranks.ranks() + ranks.rank(); };
  // of each rank's share, so that all ranks come to the same number of batches
  const auto batches = (val + ranks.ranks() - 1) / ranks.ranks();
  LoaderOf<PicturesInMaking> loader{
      0, batches, place_.loader_threads, 2 * place_.loader_threads + 2, [&](std::int64_t number) {
        PicturePlan plan;
        if (const auto index = of_this_rank(number); index < val)
          plan.indices.push_back(static_cast<std::uint32_t>(index));
        plan.prepare = [&](std::uint32_t index, std::size_t) { return shown(index); };
        return std::make_shared<PicturesInMaking>(std::move(plan));
      }};
  std::vector<PictureMatches> own;
  predictions_.emplace();
  constexpr std::int64_t kShown = 4;
  const auto every = std::max<std::int64_t>(1, batches / kShown);
  for (std::int64_t number = 0; const auto pictures = loader.next(); ++number) {
    if (ranks.as_first(stop)) return std::nullopt;
    if (pictures->empty()) continue;
    const bool is_shown = number % every == 0 && number / every < kShown;
    own.push_back(judged(detector, pictures->front(), static_cast<std::uint32_t>(of_this_rank(number)),
                         is_shown ? fmt::format("{}", number / every + 1) : ""));
    if (progress) progress(1);
  }
  const auto scores = scores_of(of_all_ranks(own, ranks), static_cast<int>(set_.categories.size()));
  auto found = of_categories(scores, set_.categories);
  found.pictures = std::move(predictions_->pictures);
  predictions_ = std::move(found);
  return average_precisions(scores, split);
}

}  // namespace abl::tasks
