// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// Looks at what a packed file says of itself. Throws: Error{kDataLoss} naming it and what is wrong.
void expect_pack(const std::filesystem::path& file);

/// A packed file, mapped: all trainers of a machine share the system's copy. Its bounds are checked here,
/// once; reading an image checks nothing more than the image itself.
/// Throws: Error{kDataLoss} naming the file and what is wrong with it; Error{kInvalidArgument} for another
/// number of classes than the trial's.
DataSet open_pack(const config::DataConfig& config, const std::filesystem::path& file);

}  // namespace abl::trainer
