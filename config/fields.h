// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/field_table.h"
#include "config/trial_config.h"

namespace abl::config {

/// The one table for each section of a trial: parsing, canonical form, nearest names, JSON Schema and the
/// reference come from it. `model.attention` has keys of its own beside its table: `layers` and `elsewhere`.
const std::vector<Field<ModelConfig>>& model_fields();
const std::vector<Field<AttentionConfig>>& attention_fields();
const std::vector<Field<DataConfig>>& data_fields();
const std::vector<Field<RecipeConfig>>& recipe_fields();

inline constexpr Range kSeedRange{0, 9007199254740991};  // 2^53 - 1: exact in every JSON reader

}  // namespace abl::config
