// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/patch_embed.h"

#include "models/embedding/patchify.h"

namespace abl::models {

PatchEmbedImpl::PatchEmbedImpl(std::int64_t image_size, std::int64_t patch, std::int64_t dim,
                               torch::Device device)
    : image_size_{image_size} {
  proj_ = register_module(
      "proj", Conv2d{Conv2dOptions{.in = 3, .out = dim, .kernel = patch, .stride = patch}, device});
}

torch::Tensor PatchEmbedImpl::forward(const torch::Tensor& images) {
  check_size(images, image_size_);
  return proj_(images).flatten(2).transpose(1, 2);
}

}  // namespace abl::models
