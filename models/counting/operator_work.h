// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>

#include <optional>

#include "models/counting/work.h"

namespace abl::models {

/// The work of one call of an operator, told by its name and the shapes that it is given; nothing for an
/// operator that costs nothing in any mode (views, additions, GELU, softmax) or calls others that do.
std::optional<Work> operator_work(const at::RecordFunction& call);

}  // namespace abl::models
