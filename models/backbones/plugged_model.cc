// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/plugged_model.h"

#include "base/error.h"

namespace abl::models {

PluggedModelImpl::PluggedModelImpl(PluggedModelOptions options, torch::Device device)
    : options_{std::move(options)}, what_{"plugin " + options_.plugin.file->name} {
  std::shared_ptr<ImageModel> model;
  try {
    model = options_.plugin.file->plugin->model(ModelSite{.image_size = options_.image_size,
                                                          .classes = options_.classes,
                                                          .drop_path = options_.drop_path.rate,
                                                          .device = device},
                                                options_.plugin.settings);
  } catch (...) {
    rethrow_of_plugin(what_);
  }
  if (!model) throw Error{Code::kInvalidArgument, what_ + ": made no model"};
  expect_on(what_, *model, device);
  model_ = Part<ImageModel>{std::move(model)};
  register_module("model", model_.ptr());
}

torch::Tensor PluggedModelImpl::forward(const torch::Tensor& images) {
  torch::Tensor logits;
  try {
    logits = model_(images);
  } catch (...) {
    rethrow_of_plugin(what_);
  }
  expect_like(what_, logits, {images.size(0), options_.classes});
  return logits;
}

}  // namespace abl::models
