// SPDX-License-Identifier: Apache-2.0
#include "config/data_sets.h"

#include <algorithm>
#include <array>

namespace abl::config {
namespace {

constexpr std::array kDataSets{
    DataSet{"imagenet-1k", 1000, 224, true, false, 0, 0,
            "ImageNet-1K as folders of JPEG files, one for each class"},
    DataSet{"cifar10", 10, 32, false, false, 0, 0, "CIFAR-10 as folders of JPEG files, one for each class"},
    DataSet{"shapes", 10, 32, false, true, 40000, 2000,
            "drawn by the trainer: ten classes that cannot be told apart without looking across the image"},
};

}  // namespace

std::span<const DataSet> data_sets() { return kDataSets; }

const DataSet* find_data_set(std::string_view name) {
  const auto found = std::ranges::find(kDataSets, name, &DataSet::name);
  return found == kDataSets.end() ? nullptr : &*found;
}

}  // namespace abl::config
