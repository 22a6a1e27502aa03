// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

namespace abl::models {

/// Rounds the weights of a model to `type`, in place: it then computes in that type without autocast. Batch
/// normalisation keeps its own: running statistics move by less than 16 bits can hold. So do other running
/// means and what is in `FullPrecision`. Fixed tables are rounded where they are used.
void lower_weights(torch::nn::Module& model, torch::ScalarType type);

/// The type in which a model computes: that of its narrowest weight.
torch::ScalarType weight_type(const torch::nn::Module& model);

}  // namespace abl::models
