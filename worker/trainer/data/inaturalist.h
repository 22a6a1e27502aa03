// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// iNaturalist 2018 and 2019: trainYEAR.json and valYEAR.json with `images` (id, file_name below the root),
/// `annotations` (image_id, category_id) and `categories` (id, name). Labels follow the sorted ids of the
/// categories, which both files must agree on. Images come in the order of the JSON file.
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file and what was expected.
DataSet open_inaturalist(const config::DataConfig& config, const std::filesystem::path& root);
bool is_inaturalist(const std::filesystem::path& root);

}  // namespace abl::trainer
