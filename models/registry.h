// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/classifier.h"
#include "models/simple_vit.h"

namespace abl::models {

/// Builds a model of the family whose options are given: the one place that lists all families, one overload
/// each. On the meta device it costs no memory and no random numbers: that is how models are counted.
/// Throws:
/// c10::ValueError when the options do not fit together.
std::shared_ptr<Classifier> build(const SimpleVitOptions& options, torch::Device device = torch::kCPU);

}  // namespace abl::models
