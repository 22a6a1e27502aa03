// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/document/trial_document.h"

namespace abl::config {

/// What a trial may be and is hardly meant to be: a batch of more images than the data set has, a training of
/// less than a step, weights whose windows nobody said. For people to look at before they submit; none of it
/// is a mistake. How many images there are is known of the data sets with a name of their own, and where
/// `train_images` limits them.
std::vector<Problem> doubts_of(const TrialConfig& trial);

}  // namespace abl::config
