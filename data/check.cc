// SPDX-License-Identifier: Apache-2.0
#include "data/check.h"

#include <algorithm>
#include <array>
#include <cmath>
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

/// Sums over pixels, channel by channel, in whole numbers: in whatever order they are added, they are the
/// same.
struct PixelSums {
  std::uint64_t pixels = 0;
  std::array<std::uint64_t, 3> values{}, squares{};

  void add(const PixelSums& other) {
    pixels += other.pixels;
    for (std::size_t c = 0; c < values.size(); ++c)
      values[c] += other.values[c], squares[c] += other.squares[c];
  }
  static PixelSums of(const images::Image& image) {
    PixelSums sums{.pixels = image.pixels.size() / 3};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      const std::uint64_t value = image.pixels[i];
      sums.values[i % 3] += value, sums.squares[i % 3] += value * value;
    }
    return sums;
  }
  void give(SplitCheck& split) const {
    if (pixels == 0) return;
    for (std::size_t c = 0; c < values.size(); ++c) {
      const double n = static_cast<double>(pixels), mean = static_cast<double>(values[c]) / n;
      const double variance = static_cast<double>(squares[c]) / n - mean * mean;
      split.mean[c] = mean / 255, split.std[c] = std::sqrt(std::max(0.0, variance)) / 255;
    }
  }
};

}  // namespace

DataCheck check_data(const DataSet& data, int threads, const std::atomic<bool>& stop,
                     const std::function<void(std::uint64_t images)>& progress) {
  DataCheck result;
  for (const auto& [source, split] : {std::pair{data.train, "train"}, std::pair{data.val, "val"}}) {
    if (source->size() == 0) continue;
    result.splits.push_back(count(*source, split, data.classes.size()));
    std::map<std::uint32_t, DamagedImage> damaged;
    PixelSums sums;
    std::mutex mutex;
    parallel_for(source->size(), threads, [&](std::size_t i) {
      const auto index = static_cast<std::uint32_t>(i);
      if (stop) throw Error{Code::kCancelled, "stopped before every image was checked"};
      try {
        const auto own = PixelSums::of(decode_image(source->open(index)));
        const std::scoped_lock lock{mutex};
        sums.add(own);
      } catch (const Error& error) {
        if (error.code() == Code::kResourceExhausted) throw;  // memory: nothing is said of the image
        const std::scoped_lock lock{mutex};
        damaged[index] = {.split = split, .name = source->name(index), .reason = error.what()};
      }
      progress(1);
    });
    sums.give(result.splits.back());
    for (auto& [index, image] : damaged) result.damaged.push_back(std::move(image));
  }
  return result;
}

}  // namespace abl::data
