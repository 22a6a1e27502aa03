// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>

namespace abl::models {

/// Of every parameter the layer that it belongs to, by its name: 0 for what makes tokens or the first map of
/// an image, then block by block, with the norm behind the last one, and the highest number for the head: for
/// the classifier, and of segmenters and detectors for all that stands on their backbone.
/// What merges patches between two stages is of the block behind it. Source: the groups of timm 1.0.31
/// (`group_matcher`); for the models that timm does not have, the same.
std::map<std::string, int> layers_of_parameters(const torch::nn::Module& model);

}  // namespace abl::models
