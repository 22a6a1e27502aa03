// SPDX-License-Identifier: Apache-2.0
#include "config/data_sets.h"

#include <algorithm>
#include <array>

namespace abl::config {
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
};

}  // namespace

std::span<const DataSet> data_sets() { return kDataSets; }

const DataSet* find_data_set(std::string_view name) {
  const auto found = std::ranges::find(kDataSets, name, &DataSet::name);
  return found == kDataSets.end() ? nullptr : &*found;
}

}  // namespace abl::config
