// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

// Each channel by its own histogram. Source: Pillow 13.0.0, ImageOps.

/// Spreads each channel linearly over 0 … 255; a channel of one value stays.
void auto_contrast(Image& image);

/// Makes the histogram of each channel flat, as far as a table of bytes can; a channel of one value stays,
/// and one of fewer than 255 pixels beside its brightest.
void equalise(Image& image);

}  // namespace abl::trainer
