// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

/// Decodes a JPEG to red, green, blue (grey and CMYK images too). With `shorter_side` > 0 it may come out
/// smaller than it is (by libjpeg-turbo's scaled DCT), but its shorter side not below that. Thread: any.
/// Throws: Error{kDataLoss} with libjpeg-turbo's reason; a picture that breaks off in the middle counts as
/// damaged.
Image decode_jpeg(std::string_view bytes, int shorter_side = 0);

}  // namespace abl::trainer
