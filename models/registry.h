// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "models/backbones/classifier.h"
#include "models/backbones/efficient_net.h"
#include "models/backbones/key_vit.h"
#include "models/backbones/reg_net.h"
#include "models/backbones/resnet.h"
#include "models/backbones/simple_vit.h"
#include "models/backbones/swin.h"
#include "models/backbones/swin_v2.h"
#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"

namespace abl::models {

/// Every family: its options tell which model is meant.
using ModelOptions = std::variant<SimpleVitOptions, VitOptions, KeyVitOptions, SwinOptions, SwinV2Options,
                                  XcitOptions, ResNetOptions, EfficientNetOptions, RegNetOptions>;

/// Builds a model of the family whose options are given. On the meta device it costs no memory and no random
/// numbers: that is how models are counted.
/// Throws: c10::ValueError when the options do not fit together.
std::shared_ptr<Classifier> build(const ModelOptions& options, torch::Device device = torch::kCPU);

/// The same model with stochastic depth. `rule`: none leaves the family's own, which is constant in XCiT and
/// linear elsewhere.
ModelOptions with_drop_path(ModelOptions options, double rate, std::optional<DropPathRule> rule = {});

/// The same transformer that keeps no activations of its first blocks, but computes them again in the
/// backward pass (`recomputed`). Of an XCiT blocks of class attention do not count, of a Swin those of all
/// stages do.
/// Throws: c10::ValueError for a family without transformer blocks; building, where there are not so many.
ModelOptions with_checkpointing(ModelOptions options, std::int64_t blocks);

/// Side of the square images that the model is made for, pixels.
std::int64_t image_size(const ModelOptions& options);

}  // namespace abl::models
