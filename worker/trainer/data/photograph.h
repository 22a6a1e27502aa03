// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// Whether a file is a JPEG, PNG or WebP by its first bytes. Throws: Error when it cannot be read.
bool is_photograph(const std::filesystem::path& file);

/// Such a file as a data set of one image, without a label. Damage is not skipped.
/// Throws: Error naming the file, here and where it is decoded.
std::shared_ptr<const ImageSource> open_photograph(const std::filesystem::path& file);

}  // namespace abl::trainer
