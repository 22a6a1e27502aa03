// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/safetensors_format.h"

namespace abl::models::safetensors {

/// LibTorch's types, each at the place of its dtype in kDtypes.
inline constexpr std::array<torch::ScalarType, kDtypes.size()> kTypes{
    torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16,
    torch::kLong,   torch::kInt,   torch::kByte, torch::kBool};

}  // namespace abl::models::safetensors
