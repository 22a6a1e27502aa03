// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/patchify.h"

namespace abl::models {

torch::Tensor patchify(const torch::Tensor& images, std::int64_t patch) {
  const auto B = images.size(0), C = images.size(1), p = patch;
  const auto rows = images.size(2) / p, columns = images.size(3) / p;
  TORCH_CHECK_VALUE(rows * p == images.size(2) && columns * p == images.size(3), "images of ", images.size(2),
                    " x ", images.size(3), " pixels cannot be cut into patches of ", p, " x ", p);
  return images.reshape({B, C, rows, p, columns, p})
      .permute({0, 2, 4, 3, 5, 1})  // [B, rows, columns, p, p, C]
      .reshape({B, rows * columns, p * p * C});
}

void check_patches(std::int64_t image_size, std::int64_t patch) {
  TORCH_CHECK_VALUE(patch > 0 && image_size > 0 && image_size % patch == 0, "images of ", image_size,
                    " pixels cannot be cut into patches of ", patch);
}

void check_size(const torch::Tensor& images, std::int64_t image_size) {
  TORCH_CHECK_VALUE(images.size(2) == image_size && images.size(3) == image_size, "images of ",
                    images.size(2), " x ", images.size(3), " pixels for a model of ", image_size, " x ",
                    image_size);
}

}  // namespace abl::models
