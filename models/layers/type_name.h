// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

namespace abl::models {

/// A type's name as PyTorch's users know it: "float32", not "Float".
inline std::string type_name(torch::ScalarType type) { return std::string{c10::getDtypeNames(type).first}; }

}  // namespace abl::models
