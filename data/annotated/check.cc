// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/check.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "data/parallel.h"

namespace abl::data {
namespace {

void count(const images::Annotated& picture, AnnotatedCheck::OfSplit& split) {
  ++split.images;
  split.without += picture.instances.empty();
  for (const auto& instance : picture.instances) {
    ++split.instances.at(static_cast<std::size_t>(instance.category));
    split.crowds += instance.crowd;
  }
  for (const std::uint8_t label : picture.labels.labels)
    ++(label == images::LabelMap::kIgnored ? split.ignored : split.pixels.at(label));
}

}  // namespace

AnnotatedCheck check_annotated(const AnnotatedSet& set, int threads, const std::atomic<bool>& stop,
                               const std::function<void(std::uint64_t pictures)>& progress) {
  AnnotatedCheck result;
  for (const auto& [source, split] : {std::pair{set.train, "train"}, std::pair{set.val, "val"}}) {
    AnnotatedCheck::OfSplit counted{.split = split,
                                    .instances = std::vector<std::uint64_t>(set.categories.size()),
                                    .pixels = std::vector<std::uint64_t>(set.labels.size())};
    std::map<std::uint32_t, std::string> damaged;
    std::mutex mutex;
    parallel_for(source->size(), threads, [&](std::size_t i) {
      const auto index = static_cast<std::uint32_t>(i);
      if (stop) throw Error{Code::kCancelled, "stopped before all images were checked"};
      try {
        const auto picture = source->read(index);
        const std::scoped_lock lock{mutex};
        count(picture, counted);
      } catch (const Error& error) {
        if (error.code() == Code::kResourceExhausted) throw;  // memory: nothing is said of the picture
        const std::scoped_lock lock{mutex};
        damaged[index] = fmt::format("{} {}: {}", split, source->name(index), error.what());
      }
      progress(1);
    });
    result.splits.push_back(std::move(counted));
    for (auto& [index, what] : damaged) result.damaged.push_back(std::move(what));
  }
  return result;
}

}  // namespace abl::data
