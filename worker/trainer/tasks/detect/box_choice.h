// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "images/random.h"
#include "models/dense/mask_rcnn/matching.h"

namespace abl::tasks {

/// `chosen` different numbers below `count`, any as likely as any others, from as many draws, however large
/// `count` is. Source: Bentley and Floyd, A sample of brilliance (CACM 1987), algorithm F2.
std::vector<std::int64_t> some_below(std::int64_t count, std::int64_t chosen, images::RandomStream& random);

/// How boxes are drawn for the losses of some images of a step's batch: each image has a random stream of its
/// own, so that it does not matter which images are computed together, or where.
/// `places`: of the images in the whole batch, that of all ranks. Result: for one computation of losses.
models::Choose choice_of(std::int64_t seed, std::int64_t step, const std::vector<std::int64_t>& places);

}  // namespace abl::tasks
