// SPDX-License-Identifier: Apache-2.0
#include "images/dino.h"

#include "images/pillow_enhance.h"
#include "images/pillow_ops.h"
#include "images/pillow_transform.h"

namespace abl::images {
namespace {

/// What tells the kinds of views apart.
struct ViewKind {
  int size = 0;
  ResizedCrop crop;
  double blur = 0, solarise = 0;
};

Image cropped(const Image& image, const ViewKind& kind, RandomStream& random) {
  const Rectangle part = draw_resized_crop(image.width, image.height, kind.crop, random);
  const auto taps = [&](int length) {
    return make_taps({.length = static_cast<double>(length), .to = kind.size, .count = kind.size}, length,
                     Interpolation::kBicubic);
  };
  return resample(image, -part.left, -part.top, taps(part.width), taps(part.height));
}

Image view_of(const Image& image, const ViewKind& kind, const MultiCrop& options, RandomStream& random) {
  Image view = cropped(image, kind, random);
  if (random.uniform() < options.flip) flip(view);
  if (random.uniform() < options.jitter_probability) colour_jitter(view, options.jitter, random);
  if (random.uniform() < options.grayscale) grayscale(view);
  if (random.uniform() < kind.blur && options.blur_high > 0)
    view = box_gaussian_blur(view, random.uniform(options.blur_low, options.blur_high));
  if (kind.solarise > 0 && random.uniform() < kind.solarise) solarise(view);
  return view;
}

}  // namespace

MultiCropViews multi_crop(const Image& image, const MultiCrop& options, RandomStream& random) {
  const ViewKind first{.size = options.global_size, .crop = options.global, .blur = options.first_blur},
      second{.size = options.global_size,
             .crop = options.global,
             .blur = options.second_blur,
             .solarise = options.solarise},
      local{.size = options.local_size, .crop = options.local, .blur = options.local_blur};
  MultiCropViews views;
  for (const auto& kind : {first, second}) views.globals.push_back(view_of(image, kind, options, random));
  for (int i = 0; i < options.locals; ++i) views.locals.push_back(view_of(image, local, options, random));
  return views;
}

}  // namespace abl::images
