// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// STL-10's binary files: train_X.bin and test_X.bin with 3 planes of 96×96 bytes an image, column after
/// column; train_y.bin and test_y.bin with a byte each, 1 to 10. The unlabelled images are left alone.
/// Throws: Error{kNotFound, kInvalidArgument, kDataLoss} naming the file and what was expected.
DataSet open_stl10(const config::DataConfig& config, const std::filesystem::path& root);

}  // namespace abl::trainer
