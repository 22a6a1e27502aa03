// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <ATen/core/Generator.h>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace abl::models {

struct MatchOptions {
  double high = 0.5;        ///< overlap from which a box is of what it overlaps most
  double low = 0.5;         ///< overlap below which it is of the background; between the two it is of neither
  bool keeps_best = false;  ///< what overlaps a thing most, of all boxes, is of a thing however little it is
};

constexpr std::int64_t kBackground = -1, kUndecided = -2;

/// Which thing each box is of: its number, kBackground or kUndecided.
/// Shape: overlaps [things, boxes] -> [boxes]. There is a thing.
/// Source: "Faster R-CNN", section 3.1.2.
torch::Tensor match(const torch::Tensor& overlaps, const MatchOptions& options);

/// Gives `chosen` different numbers below `count`: how boxes of an image, told by its place in the batch, are
/// drawn for the losses.
/// Shape: -> [chosen], of int64, on the processor.
using Choose = std::function<torch::Tensor(std::size_t image, std::int64_t count, std::int64_t chosen)>;

/// By a generator's random numbers, one image after another: the same seed, the same boxes.
Choose choose_by(at::Generator generator);

struct SampleOptions {
  std::int64_t count = 256;      ///< of an image
  double share_of_things = 0.5;  ///< at most, the rest is background, or fewer where there is no more
};

/// Boxes for the losses, in ascending order.
struct Sample {
  torch::Tensor things, background;  ///< [n], [m], of int64
};

/// Shape: labels [boxes]: above 0 of a thing, 0 of the background, below 0 of neither.
Sample sample(const torch::Tensor& labels, const SampleOptions& options, std::size_t image,
              const Choose& choose);

}  // namespace abl::models
