// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "images/image.h"
#include "images/pillow_transform.h"
#include "images/random.h"

namespace abl::images {

/// How far each may go: a factor of max(0, 1 - s) … 1 + s, for the hue a turn of -s … s, s <= 0.5. 0: left
/// out.
struct ColourJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};

/// Each in turn, in a random order, with a uniform factor. Source: torchvision 0.29, ColorJitter. Draws: the
/// order, then the factors of those that are in.
void colour_jitter(Image& image, const ColourJitter& jitter, RandomStream& random);

/// The part from (left, top), which may reach outside: there it is black.
Image crop(const Image& image, int left, int top, int width, int height);

/// Copies the columns left … left+out.width-1 of `image` that exist; row y of `out` is row top + y.
void copy_overlap(const Image& image, int left, int top, Image& out);

/// The image in a frame of one colour, as torchvision 0.29's `pad` with padding_mode "constant".
Image pad(const Image& image, int left, int top, int right, int bottom, Colour fill = {});

/// The image in a frame of its own reflection, the outermost pixel not repeated: padding_mode "reflect".
/// Throws: Error{kInvalidArgument} for a frame that is not smaller than the image.
Image pad_reflected(const Image& image, int left, int top, int right, int bottom);

/// Left becomes right.
void flip(Image& image);

/// Convolution with a Gaussian of `kernel_size` × `kernel_size` pixels, the image reflected at its edges.
/// Source: torchvision 0.29, gaussian_blur. Deviation: rows and columns in turn where torchvision has one sum
/// over the square, so that a byte on the edge of rounding may differ by 1.
/// Throws: Error{kInvalidArgument} for an even kernel, sigma <= 0, or an image with a side of half the kernel
/// or less.
Image gaussian_blur(const Image& image, int kernel_size, double sigma);

/// Where index `i` of -size < i < 2·size - 1 lands when a line of `size` pixels is reflected at its outermost
/// pixels, which are not repeated: 2 1 [0 1 2 3] 2 1.
constexpr int reflected(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * size - 2 - i;
}

/// Ranges of the field's usual random resized crop.
struct ResizedCrop {
  double area_low = 0.08, area_high = 1;               ///< as parts of the image's
  double aspect_low = 3.0 / 4, aspect_high = 4.0 / 3;  ///< width over height
};

/// A rectangle of uniform area and log-uniform aspect that lies in the image; after ten misses the largest
/// one in the centre of which the aspect is in range. Source: torchvision 0.29, RandomResizedCrop.get_params.
/// Draws: area, aspect, left, top (there top, left).
Rectangle draw_resized_crop(int width, int height, const ResizedCrop& ranges, RandomStream& random);

/// TrivialAugment in its wide form: one of 14 operations on colours or shape, the image itself among them, at
/// one of 31 strengths, where it has such, to either side. What moves in from outside is black. Source:
/// torchvision 0.29, TrivialAugmentWide, with PyTorch's `linspace` as it is without vector instructions: with
/// them a translation by 16 pixels is one by 15.999999, of which whole pixels are taken. Draws: operation,
/// strength, side, as far as it has them.
void trivial_augment(Image& image, Interpolation interpolation, RandomStream& random);

/// One of grayscale, solarisation and Gaussian blur, with equal chances, then colour jitter.
struct ThreeAugment {
  int solarise_threshold = 128;
  int blur_kernel = 0;  ///< side of torchvision's Gaussian kernel; 0: Pillow's box blurs, of that radius
  double blur_low = 0.1, blur_high = 2.0;  ///< sigma or radius, in pixels
  ColourJitter jitter{.brightness = 0.3, .contrast = 0.3, .saturation = 0.3};
};

/// DeiT III's. Source: facebookresearch/deit, augment.py; the jitter of 0.3 is that of its recipe.
constexpr ThreeAugment kDeitThreeAugment{};

/// The MSF release's. Source: tk1980/MSFtransformer at ce23d1f, presets.py, policy "three".
constexpr ThreeAugment kMsfThreeAugment{.blur_kernel = 11};

/// Throws: as gaussian_blur, for an image too small for the kernel.
void three_augment(Image& image, const ThreeAugment& options, RandomStream& random);

}  // namespace abl::images
