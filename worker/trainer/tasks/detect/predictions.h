// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "images/annotated.h"
#include "probes/probe.h"
#include "scoring/coco.h"

namespace abl::tasks {

/// A picture of its own size with what is annotated, beside the same with what was found of a score of at
/// least 1/2: masks tinted and boxes outlined in the colours of their categories.
images::Image with_things(const images::Image& picture, const std::vector<images::Instance>& truths,
                          const std::vector<scoring::Detection>& found);

/// Of each category average precisions, and precision over recall at an overlap of 1/2, in percent; colours
/// of the categories. NaN where there is no truth.
probes::Findings of_categories(const scoring::CocoScores& boxes, const scoring::CocoScores& masks,
                               const std::vector<std::string>& categories);

}  // namespace abl::tasks
