// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/classifier.h"
#include "models/weights.h"

namespace abl::trainer {

/// models::load_weights, of a file that a person named. Throws: Error{kInvalidArgument}, one line that begins
/// with `what` and says how many tensors do not fit and which the first are.
models::LoadedWeights fit_weights(models::Classifier& model, const models::State& state,
                                  const std::string& what, const models::WeightsOptions& options = {});

}  // namespace abl::trainer
