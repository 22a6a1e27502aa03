// SPDX-License-Identifier: Apache-2.0
#include "config/layer_shape.h"

#include <algorithm>

namespace abl::config {
namespace {

/// In Swin each stage is twice as wide as the one before it.
LayerShape shape_of_stage(const ModelConfig& model, std::size_t stage) {
  const int dim = model.dim << stage;
  const int heads = stage < model.stage_heads.size() ? model.stage_heads[stage] : 0;
  if (heads == 0 || dim % heads != 0) return {.dim = dim};  // a problem of the stages, told there
  return {.dim = dim, .heads = heads, .dim_head = dim / heads};
}

}  // namespace

std::vector<LayerShape> shapes_of(const ModelConfig& model, const std::vector<bool>& chosen) {
  if (model.stage_depths.empty()) return {{model.dim, model.heads, model.dim_head}};
  std::vector<LayerShape> shapes;
  auto layer = chosen.begin();
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage) {
    const auto end = layer + std::min<std::ptrdiff_t>(model.stage_depths[stage], chosen.end() - layer);
    if (std::find(layer, end, true) != end) shapes.push_back(shape_of_stage(model, stage));
    layer = end;
  }
  if (shapes.empty()) shapes.emplace_back();
  return shapes;
}

}  // namespace abl::config
