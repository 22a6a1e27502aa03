// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/model_factory.h"

#include "base/error.h"

namespace abl::trainer {
namespace {

models::AttentionChoice choice(const config::AttentionConfig& config) {
  models::AttentionChoice choice;
  choice.kernel = config.kernel == "gaussian" ? models::Kernel::kGaussian
                  : config.kernel == "none"   ? models::Kernel::kNone
                                              : models::Kernel::kDot;
  choice.probe = config.probe == "inside"    ? models::Probe::kInside
                 : config.probe == "outside" ? models::Probe::kOutside
                                             : models::Probe::kNone;
  choice.share = config.share;
  choice.groups = config.groups;
  choice.layout = config.layout == "block" ? models::Layout::kBlock : models::Layout::kInterleaved;
  choice.tied_weight_scale = config.tied_weight_scale;
  return choice;
}

}  // namespace

models::SimpleVitOptions model_options(const config::ModelConfig& model, const config::DataConfig& data) {
  if (model.family != "simple-vit")
    throw Error{Code::kUnimplemented, "model.family: this trainer builds simple-vit, not " + model.family};
  models::SimpleVitOptions options{.image_size = data.image_size,
                                   .patch = model.patch,
                                   .classes = data.classes,
                                   .dim = model.dim,
                                   .depth = model.depth,
                                   .heads = model.heads,
                                   .dim_head = model.dim_head,
                                   .mlp_dim = model.mlp_dim,
                                   .attention = {}};
  for (const auto& layer : model.attention) options.attention.push_back(choice(layer));
  return options;
}

}  // namespace abl::trainer
