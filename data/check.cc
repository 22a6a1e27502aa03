// SPDX-License-Identifier: Apache-2.0
#include "data/check.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "data/parallel.h"
#include "data/stored_source.h"

namespace abl::data {
namespace {

SplitCheck count(const ImageSource& source, const char* split, std::size_t classes) {
  std::vector<std::uint32_t> images(classes);
  for (std::uint32_t index = 0; index < source.size(); ++index)
    ++images.at(static_cast<std::size_t>(source.label(index)));
  return {.split = split,
          .images = source.size(),
          .classes = static_cast<std::uint32_t>(classes - std::ranges::count(images, 0u)),
          .fewest = std::ranges::min(images),
          .most = std::ranges::max(images)};
}

}  // namespace

DataCheck check_data(const DataSet& data, int threads, const std::atomic<bool>& stop,
                     const std::function<void(std::uint64_t images)>& progress) {
  DataCheck result;
  for (const auto& [source, split] : {std::pair{data.train, "train"}, std::pair{data.val, "val"}}) {
    if (source->size() == 0) continue;
    result.splits.push_back(count(*source, split, data.classes.size()));
    std::map<std::uint32_t, DamagedImage> damaged;
    std::mutex mutex;
    parallel_for(source->size(), threads, [&](std::size_t i) {
      const auto index = static_cast<std::uint32_t>(i);
      if (stop) throw Error{Code::kCancelled, "stopped before every image was checked"};
      try {
        decode_image(source->open(index));
      } catch (const Error& error) {
        if (error.code() == Code::kResourceExhausted) throw;  // memory: nothing is said of the image
        const std::scoped_lock lock{mutex};
        damaged[index] = {.split = split, .name = source->name(index), .reason = error.what()};
      }
      progress(1);
    });
    for (auto& [index, image] : damaged) result.damaged.push_back(std::move(image));
  }
  return result;
}

}  // namespace abl::data
