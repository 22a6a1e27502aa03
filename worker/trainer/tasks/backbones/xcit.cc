// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/xcit.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions xcit_options(const ModelConfig& model, const DataConfig& data) {
  models::XcitOptions options{.image_size = data.image_size,
                              .patch = model.patch,
                              .classes = data.classes,
                              .dim = model.dim,
                              .heads = model.heads,
                              .mlp_ratio = model.mlp_ratio,
                              .class_blocks = model.class_blocks,
                              .eta = model.eta,
                              .tokens_norm = model.tokens_norm,
                              .patch_projection = model.patches,
                              .blocks = model.block};
  for (std::size_t block = 0; block < model.block.size(); ++block)
    if (const auto& embedding = model.embedding[block]; embedding.kind != config::EmbeddingKind::kLinear)
      options.blocks[block].embedding = embedding;
  return options;
}

}  // namespace

extern constinit const Backbone kXcitBackbone{.family = "xcit", .options = xcit_options};

}  // namespace abl::tasks
