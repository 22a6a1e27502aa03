// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// The embedded images (embedded_images.h), drawn once into memory.
/// Throws: Error{kInvalidArgument} when image size or classes are not theirs.
DataSet open_drawn(const config::DataConfig& config);

}  // namespace abl::trainer
