// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

/// Convolution with a Gaussian of `kernel_size` × `kernel_size` pixels, the image reflected at its edges.
/// Source: torchvision 0.29, gaussian_blur. Deviation: rows and columns in turn where torchvision has one sum
/// over the square, so that a byte on the edge of rounding may differ by 1.
/// Throws: Error{kInvalidArgument} for an even kernel, sigma <= 0, or an image with a side of half the kernel
/// or less.
Image gaussian_blur(const Image& image, int kernel_size, double sigma);

/// Three box blurs for each direction, of which the width, not a whole number, is such that they have the
/// variance radius². Edges are repeated. Radius 0 changes nothing.
/// Source: Pillow 13.0.0, ImageFilter.GaussianBlur, equal to the byte; the method is that of Gwosdek et al.,
/// Theoretical foundations of Gaussian convolution by extended box filtering (SSVM 2011).
Image box_gaussian_blur(const Image& image, double radius);

}  // namespace abl::trainer
