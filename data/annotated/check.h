// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>

#include "data/annotated/annotated_source.h"

namespace abl::data {

/// What was counted of a split.
struct AnnotatedCheck {
  struct OfSplit {
    const char* split = "";                 ///< train | val
    std::uint32_t images = 0, without = 0;  ///< `without` any instance
    std::vector<std::uint64_t> instances;   ///< of each category
    std::uint64_t crowds = 0;
    std::vector<std::uint64_t> pixels;  ///< of each label
    std::uint64_t ignored = 0;          ///< pixels without a label
  };
  std::vector<OfSplit> splits;
  std::vector<std::string> damaged;  ///< "train NAME: reason", in the order of the pictures
};

/// Decodes every picture of a set with all that is known of it. `progress` is called from several threads.
/// Throws: Error{kCancelled} when `stop` becomes true.
AnnotatedCheck check_annotated(const AnnotatedSet& set, int threads, const std::atomic<bool>& stop,
                               const std::function<void(std::uint64_t pictures)>& progress);

}  // namespace abl::data
