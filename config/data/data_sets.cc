// SPDX-License-Identifier: Apache-2.0
#include "config/data/data_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace abl::config {
namespace {

bool embedded(const DataConfig& data) {
  const DataSet* known = find_data_set(data.name);
  return known && known->embedded;
}

bool holds_out(const DataConfig& data) { return data.held_out > 0; }

}  // namespace

std::int64_t known_training_images(const DataConfig& data) {
  const DataSet* known = find_data_set(data.name);
  const std::int64_t there = known && !known->embedded ? known->images : 0;
  if (there == 0 || data.train_images == 0) return std::max<std::int64_t>(there, data.train_images);
  return std::min<std::int64_t>(there, data.train_images);
}

std::int64_t held_out_of(const DataConfig& data, std::int64_t train) {
  if (data.held_out <= 0 || train <= 0) return 0;
  if (data.held_out >= 1) return std::llround(data.held_out);
  return std::max<std::int64_t>(1, std::llround(data.held_out * static_cast<double>(train)));
}

std::string wrong_held_out(const DataConfig& data, std::int64_t train, std::int64_t classes) {
  const std::int64_t held = held_out_of(data, train), most = train - std::max<std::int64_t>(1, classes);
  if (held <= std::max<std::int64_t>(0, most)) return {};
  return fmt::format("{} of {} images to train on leave {}; expected at most {}",
                     data.held_out >= 1 ? fmt::format("{}", held)
                                        : fmt::format("{} ({})", canonical_number(data.held_out), held),
                     train, classes > 0 ? "less than one for each class" : "none",
                     std::max<std::int64_t>(0, most));
}

const std::vector<Field<DataConfig>>& data_fields() {
  using D = DataConfig;
  static const std::vector<Field<D>> kFields{
      {.name = "name",
       .member = &D::name,
       .sentence = "Logical name; each worker maps it to a folder. An unknown name needs `classes`, and "
                   "`image_size` where no preset gives it.",
       .required = true},
      {.name = "image_size",
       .member = &D::image_size,
       .sentence = "Side of the square images, pixels.",
       .range = {1, 65536},
       .required = true,
       .derived_text = "the preset's (224 unless its line says another; `simple-vit-nano` has none), or the "
                       "data set's where all its images have one"},
      {.name = "classes",
       .member = &D::classes,
       .sentence = "Number of classes.",
       .range = {2, 1e6},
       .required = true,
       .derived_text = "the data set's"},
      {.name = "train_images",
       .member = &D::train_images,
       .sentence =
           "Number of training images: drawn, or the first of a fixed shuffle of the folder; at most as many "
           "as it has, 0 = all.",
       .range = kCount},
      {.name = "val_images",
       .member = &D::val_images,
       .sentence = "The same for evaluation.",
       .range = kCount,
       .inert = holds_out,
       .inert_when = "images are held out of training"},
      {.name = "held_out",
       .member = &D::held_out,
       .sentence =
           "Of the training images, those that are not trained on and evaluated in place of the other split, "
           "which no model sees: below 1 a part of them, from 2 on a number; 0 = none. The same ones "
           "whatever the seed, of each class its share.",
       .range = kCount},
      {.name = "damaged",
       .member = choice<&D::damaged>(),
       .sentence = "What an unreadable image does: ends the run, or is left out and named in the log.",
       .inert = embedded,
       .inert_when = "the images are embedded"},
      {.name = "decode",
       .member = choice<&D::decode>(),
       .sentence =
           "How JPEG files are decoded in training: at full scale, or at 1/2, 1/4 or 1/8 where a crop is "
           "that much larger than what is made of it, which is faster and a little less exact. Other files "
           "are "
           "always decoded at full scale.",
       .inert = embedded,
       .inert_when = "the images are embedded"},
      {.name = "mean",
       .member = &D::mean,
       .sentence =
           "What is taken from red, green and blue before a model sees them, 1 being full; by default "
           "ImageNet's. Weights to start from expect what they were trained with.",
       .range = kFraction},
      {.name = "std",
       .member = &D::std,
       .sentence = "Standard deviation of red, green and blue, by which they are divided then.",
       .range = {0, 10, true}},
  };
  return kFields;
}

namespace {

constexpr std::array kDataSets{
    DataSet{"imagenet-1k", 1000, 224, true, false, 0, 0, 1'281'167,
            "ImageNet-1K as folders of images, one for each class"},
    DataSet{"cifar10", 10, 32, false, false, 0, 0, 50'000, "CIFAR-10, binary or as folders of images"},
    DataSet{"cifar100", 100, 32, false, false, 0, 0, 50'000,
            "CIFAR-100, binary or as folders of images; fine labels"},
    DataSet{"stl10", 10, 96, false, false, 0, 0, 5'000, "STL-10, binary; the labelled images"},
    DataSet{"stanford-cars", 196, 224, true, false, 0, 0, 8'144, "Stanford Cars, by its lists or as folders"},
    DataSet{"inaturalist-2018", 8142, 224, true, false, 0, 0, 437'513,
            "iNaturalist 2018, by its JSON annotations"},
    DataSet{"inaturalist-2019", 1010, 224, true, false, 0, 0, 265'213,
            "iNaturalist 2019, by its JSON annotations"},
    DataSet{"shapes", 10, 32, false, true, 40000, 2000, 0,
            "drawn by the trainer: ten classes that cannot be told apart without looking across the image"},
    DataSet{"tinted-shapes", 10, 32, false, true, 40000, 2000, 0,
            "the same with each tile's colour off by chance: no model is right of every image"},
    DataSet{"negative-shapes", 10, 32, false, true, 40000, 2000, 0,
            "the same with fewer shapes, and tiles in the negative of the colour that is asked for"},
    DataSet{"ade20k", 0, 512, false, false, 0, 0, 20'210,
            "ADE20K as of the scene parsing challenge: 150 classes of pixels, the others do not count", 150},
    DataSet{"scenes", 0, 96, false, true, 4000, 500, 0,
            "drawn by the trainer: up to six shapes of seven kinds, one over another, on uneven ground", 8,
            7},
    DataSet{"coco", 0, 800, false, false, 0, 0, 118'287, "COCO instances of 2017: 80 categories of things", 0,
            80},
};

}  // namespace

std::span<const DataSet> data_sets() { return kDataSets; }

int classes_of(const DataSet& set, TaskKind kind) {
  switch (kind) {
    case TaskKind::kClassify:
    case TaskKind::kDino:  // whose features labels judge
    case TaskKind::kProbeLinear:
    case TaskKind::kProbeKnn:
      return set.classes;
    case TaskKind::kSegment:
      return set.labels;
    case TaskKind::kDetect:
      return set.things;
  }
  return 0;
}

const DataSet* find_data_set(std::string_view name) {
  const auto found = std::ranges::find(kDataSets, name, &DataSet::name);
  return found == kDataSets.end() ? nullptr : &*found;
}

}  // namespace abl::config
