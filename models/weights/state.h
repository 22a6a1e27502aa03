// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <string>

namespace abl::models {

/// What a checkpoint must hold of a model, by name: its parameters, the running statistics of its batch norms
/// and other running means. The tensors share memory with the model. Fixed tables (positions, indices, masks)
/// follow from the options and are not part of it.
std::map<std::string, torch::Tensor> state_of(const torch::nn::Module& model);

/// Copies `state` into the model.
/// Throws: Error{kInvalidArgument} naming what is missing, surplus or of another shape; the model is then
/// untouched.
void load_state(torch::nn::Module& model, const std::map<std::string, torch::Tensor>& state);

}  // namespace abl::models
