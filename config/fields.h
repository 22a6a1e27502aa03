// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/field_table.h"
#include "config/trial_config.h"

namespace abl::config {

/// The one table for each section of a trial: parsing, canonical form, nearest names, JSON Schema and the
/// reference come from it. Those of a model's layers are the tables of config/layer_sections.h.
const std::vector<Field<ModelConfig>>& model_fields();
const std::vector<Field<AttentionConfig>>& attention_fields();
const std::vector<Field<KeyConfig>>& key_fields();
const std::vector<Field<EmbeddingConfig>>& embedding_fields();
const std::vector<Field<BlockConfig>>& block_fields();
const std::vector<Field<DataConfig>>& data_fields();
const std::vector<Field<RecipeConfig>>& recipe_fields();

/// The keys that have meaning for a family; all keys where it is not known.
const std::vector<Field<ModelConfig>>& model_fields_of(const std::string& family);

inline constexpr Range kSeedRange{0, 9007199254740991};  // 2^53 - 1: exact in every JSON reader

}  // namespace abl::config
