// SPDX-License-Identifier: Apache-2.0
#include "config/recipe/evaluation_size.h"

#include <algorithm>
#include <cmath>

namespace abl::config {

int evaluation_side(int image_size, double crop_ratio) {
  return std::max(image_size, static_cast<int>(std::floor(image_size / crop_ratio)));
}

double crop_ratio_of(int image_size, int side) {
  if (side <= image_size) return 1;
  const double exact = 1.0 * image_size / side;
  for (double unit = 10; unit < 1e15; unit *= 10)  // exact * unit itself may be rounded to either side
    for (const double digits :
         {std::floor(exact * unit), std::ceil(exact * unit), std::floor(exact * unit) - 1})
      if (digits > 0 && evaluation_side(image_size, digits / unit) == side) return digits / unit;
  double ratio = exact;  // rounded, it may lie just above what gives the last pixel
  while (evaluation_side(image_size, ratio) < side) ratio = std::nextafter(ratio, 0);
  return ratio;
}

}  // namespace abl::config
