// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/field_table.h"
#include "config/json.h"
#include "config/trial_config.h"

namespace abl::config {

inline constexpr Range kSeedRange{0, 9007199254740991};  // 2^53 - 1: exact in every JSON reader

/// Reads {"model": …, "data": …, "task": …, "recipe": …, "seed": n}, of which task may be missing, fills in
/// presets, recipes and defaults and checks shapes and ranges. `data.image_size` follows the preset where the
/// document does not give it, unless the data set's images have a size of their own. All problems are
/// appended to `problems`; the result is usable only when there are none.
TrialConfig read_trial(const Json& document, std::vector<Problem>& problems);

/// As above for one document that must be right. Canonical text is accepted too: of a document that names
/// neither preset nor recipe, the evaluation may be in pixels (`eval_resize`), as it is stored.
/// Throws: Error{kInvalidArgument} listing every problem, a line each.
TrialConfig read_trial_or_throw(const Json& document);

/// Reads what `canonical_model_text` wrote (or a whole trial): the model, image size and classes of the data,
/// and how many blocks are computed twice.
/// Throws: Error{kInvalidArgument} listing every problem, a line each.
TrialConfig read_model_or_throw(const Json& document);

/// The canonical document: RFC 8785 (sorted keys, shortest numbers), typed by the field tables; keys equal to
/// their default, without effect or of another family are left out; presets and recipes are expanded; sharing
/// letters in order of first use; lists by layer only where layers differ; `recipe.eval_crop_ratio` as the
/// pixels it makes (`eval_resize`), unless those are the image size. Equal models, data, recipes and seeds
/// give equal text.
std::string canonical_text(const TrialConfig& trial);
/// The same for the model alone with image size, classes and the blocks that are computed twice: what counts
/// (params, FLOPs, memory) depend on.
std::string canonical_model_text(const TrialConfig& trial);
/// The same with what the images of the model are normalised with, also where that is the default: all that
/// another training must know to learn from the model.
std::string canonical_teacher_text(const TrialConfig& trial);

/// The canonical document before it becomes text.
Json canonical_document(const TrialConfig& trial);
/// The document with every key that has meaning for the model's family and its value, defaults, preset and
/// recipe names included: for people and for settings as table columns.
Json full_document(const TrialConfig& trial);
/// Of the full document the keys that have an effect: each of them is there with the value that holds,
/// whether it was written or not.
Json effective_document(const TrialConfig& trial);

/// SHA-256 of the canonical text, in hexadecimal: the first of a trial's three identity columns.
std::string config_hash(const std::string& canonical);

/// The model of a distilling recipe's teacher: its preset, on the trial's images and classes. All problems
/// are appended to `problems`, those of a preset that cannot take these images too; the result is usable only
/// when there are none.
TrialConfig read_teacher(const TrialConfig& trial, std::vector<Problem>& problems);

}  // namespace abl::config
