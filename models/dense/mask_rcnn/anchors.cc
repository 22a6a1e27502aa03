// SPDX-License-Identifier: Apache-2.0
#include "models/dense/mask_rcnn/anchors.h"

#include <torch/utils.h>

namespace abl::models {
namespace {

using torch::Tensor;

/// Around the origin: [ratios, 4].
Tensor anchors_of(double size, const std::vector<double>& ratios) {
  const auto heights = torch::tensor(ratios, torch::kFloat).sqrt(), widths = 1 / heights;
  const auto h = heights * size, w = widths * size;
  return (torch::stack({-w, -h, w, h}, 1) / 2).round();
}

}  // namespace

std::vector<Tensor> make_anchors(const AnchorOptions& options, const ImageSize& image,
                                 const std::vector<Tensor>& levels) {
  TORCH_CHECK_VALUE(levels.size() == options.sizes.size(), "anchors of ", options.sizes.size(),
                    " sizes for a pyramid of ", levels.size(), " levels; a size for each is expected");
  std::vector<Tensor> all;
  for (const auto& level : levels) {
    const auto H = level.size(2), W = level.size(3);
    const auto like = level.options().dtype(torch::kFloat);
    const auto y = torch::arange(H, like).mul_(image.height / H).view({-1, 1}).expand({H, W});
    const auto x = torch::arange(W, like).mul_(image.width / W).expand({H, W});
    const auto places = torch::stack({x, y, x, y}, 2).view({-1, 1, 4});  // [H·W, 1, 4]
    all.push_back((places + anchors_of(options.sizes[all.size()], options.ratios).to(like)).view({-1, 4}));
  }
  return all;
}

}  // namespace abl::models
