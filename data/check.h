// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <functional>

#include "data/image_source.h"

namespace abl::data {

struct SplitCheck {
  const char* split = "";  ///< train | val
  std::uint32_t images = 0, classes = 0;
  std::uint32_t fewest = 0, most = 0;  ///< images of a class
  /// Of red, green and blue over all pixels that could be decoded, 1 being full; 0 where there are none.
  std::array<double, 3> mean{}, std{};
};

struct DamagedImage {
  const char* split = "";
  std::string name, reason;
};

struct DataCheck {
  std::vector<SplitCheck> splits;     ///< those that have images
  std::vector<DamagedImage> damaged;  ///< in the order of the images
};

/// Decodes every image of a data set, as a whole. `progress` is called from several threads.
/// Throws: Error{kCancelled} when `stop` becomes true.
DataCheck check_data(const DataSet& data, int threads, const std::atomic<bool>& stop,
                     const std::function<void(std::uint64_t images)>& progress);

}  // namespace abl::data
