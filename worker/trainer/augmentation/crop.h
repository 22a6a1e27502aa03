// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

/// The part from (left, top), which may reach outside: there it is black.
Image crop(const Image& image, int left, int top, int width, int height);

/// The image in a frame of one colour, as torchvision 0.29's `pad` with padding_mode "constant".
Image pad(const Image& image, int left, int top, int right, int bottom, Colour fill = {});

/// The image in a frame of its own reflection, the outermost pixel not repeated: padding_mode "reflect".
/// Throws: Error{kInvalidArgument} for a frame that is not smaller than the image.
Image pad_reflected(const Image& image, int left, int top, int right, int bottom);

/// Left becomes right.
void flip(Image& image);

}  // namespace abl::trainer
