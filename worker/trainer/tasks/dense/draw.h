// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "images/annotated.h"
#include "probes/probe.h"
#include "scoring/coco.h"

namespace abl::tasks {

/// The colour of a class, from 0: bright and dark ones far apart in hue, the same ones always.
images::Colour colour_of_class(int index);

/// Labels in the colours of their classes; white where there is none.
images::Image drawn(const images::LabelMap& labels);

/// Pictures of one size beside each other, each made at most `longest` pixels long by leaving out pixels.
images::Image side_by_side(const std::vector<images::Image>& pictures, int longest = 256);

/// A picture of its own size with what is annotated, beside the same with what was found of a score of at
/// least 1/2: masks tinted and boxes outlined in the colours of their categories.
images::Image with_things(const images::Image& picture, const std::vector<images::Instance>& truths,
                          const std::vector<scoring::Detection>& found);

/// The colours of classes, from `first` on, by their names: what a page shows beside the pictures.
/// Shape: [class, red/green/blue].
probes::Array legend(const std::vector<std::string>& classes, int first = 0);

}  // namespace abl::tasks
