// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/counting/counter.h"

namespace abl::trainer {

/// A model's parts as an indented table, a line each, down to `depth` levels. Siblings that are numbered and
/// alike share a line: "blocks.0-11".
std::string part_tree(const std::vector<models::PartCount>& parts, int depth);

}  // namespace abl::trainer
