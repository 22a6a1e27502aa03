// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/enum_names.h"

namespace abl::models {

/// How the rate of stochastic depth depends on the layer.
enum class DropPathRule {
  kLinear,    ///< from 0 in the first layer to the rate in the last: Huang et al. (ECCV 2016), timm, Swin
  kConstant,  ///< the rate in every layer: XCiT's release
};

constexpr std::string_view name_of(DropPathRule rule) {
  switch (rule) {
    case DropPathRule::kLinear:
      return "linear";
    case DropPathRule::kConstant:
      return "constant";
  }
  return {};
}

}  // namespace abl::models
