// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/field_table.h"
#include "config/trial_config.h"

namespace abl::config {

/// The keys of a model, those of one family alone among them: parsing, canonical form, nearest names, JSON
/// Schema and the reference come from it. Those of a model's layers are in config/model/layer_sections.h.
const std::vector<Field<ModelConfig>>& model_fields();

/// The keys that have meaning for a family; all keys where it is not known.
const std::vector<Field<ModelConfig>>& model_fields_of(const std::string& family);

/// Reads the `model` section: the keys and the layer sections of its family, on top of a preset's. Appends
/// all problems, but not whether images fit (check_sizes).
ModelConfig read_model(const Json& section, std::vector<Problem>& problems);

/// The keys and layer sections of the model's family that are not as by default.
Json canonical_model(const ModelConfig& model);
/// All keys and layer sections of the model's family.
Json full_model(const ModelConfig& model);
/// Of them those that have an effect.
Json effective_model(const ModelConfig& model);

}  // namespace abl::config
