// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::trainer {

/// Where index `i` of -size < i < 2·size - 1 lands when a line of `size` pixels is reflected at its outermost
/// pixels, which are not repeated: 2 1 [0 1 2 3] 2 1.
constexpr int reflected(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * size - 2 - i;
}

}  // namespace abl::trainer
