// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// A smaller image: each of its pixels is a mean of those it covers, weighted by a triangle as wide as the
/// reduction (antialiased bilinear). For files that are made once; training has a faster one.
/// `width`, `height`: at most the image's.
Image shrink(const Image& image, int width, int height);

}  // namespace abl::trainer
