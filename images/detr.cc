// SPDX-License-Identifier: Apache-2.0
#include "images/detr.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace abl::images {
namespace {

Annotated to_one_of(const Annotated& picture, const std::vector<int>& sides, int longest,
                    RandomStream& random) {
  const auto [width, height] =
      size_by_shorter(picture.image.width, picture.image.height, sides[random.below(sides.size())], longest);
  return resized(picture, width, height);
}

/// low … high, both among them; `high` where that is less.
int whole_between(int low, int high, RandomStream& random) {
  low = std::min(low, high);
  return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

}  // namespace

Size size_by_shorter(int width, int height, int shorter, int longest) {
  const int least = std::min(width, height), most = std::max(width, height);
  if (longest > 0 && static_cast<double>(most) / least * shorter > longest)
    shorter = static_cast<int>(std::nearbyint(static_cast<double>(longest) * least / most));
  shorter = std::max(1, shorter);
  if (least == shorter) return {width, height};
  const auto other = [&](int side) {
    return std::max(1, static_cast<int>(static_cast<double>(shorter) * side / least));
  };
  return width < height ? Size{shorter, other(height)} : Size{other(width), shorter};
}

Annotated multi_scale(Annotated picture, const MultiScale& options, RandomStream& random) {
  if (options.sides.empty() || (options.crop > 0 && options.before_crop.empty()))
    throw Error{Code::kInvalidArgument, "no sizes to scale to; expected at least one"};
  if (random.uniform() < options.flip) flip(picture);
  if (random.uniform() < options.crop) {
    picture = to_one_of(picture, options.before_crop, 0, random);
    const Size whole{picture.image.width, picture.image.height};
    Rectangle part;
    part.width = whole_between(options.smallest_crop, std::min(whole.width, options.largest_crop), random);
    part.height = whole_between(options.smallest_crop, std::min(whole.height, options.largest_crop), random);
    part.left = whole_between(0, whole.width - part.width, random);
    part.top = whole_between(0, whole.height - part.height, random);
    picture = cropped(picture, part);
  }
  return to_one_of(picture, options.sides, options.longest, random);
}

}  // namespace abl::images
