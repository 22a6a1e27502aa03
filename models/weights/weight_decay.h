// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <set>
#include <string>
#include <string_view>

namespace abl::models {

/// The parameters that the releases of these models leave out of weight decay, by their names in the model.
/// Codes of F-SNE are not among them: see `is_code`.
std::set<std::string> undecayed(const torch::nn::Module& model);

/// Whether a parameter holds the codes of F-SNE, which are a choice of their own: SNE eq. 7 as printed has
/// them outside the decayed weights, while a trainer that goes by names and dimensions, as XCiT's, decays
/// them.
bool is_code(std::string_view parameter_name);

}  // namespace abl::models
