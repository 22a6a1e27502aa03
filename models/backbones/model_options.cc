// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/model_options.h"

namespace abl::models {

std::shared_ptr<Classifier> build(const ModelOptions& options, torch::Device device) {
  return options.held_->build(device);
}

ModelOptions with_drop_path(const ModelOptions& options, double rate, std::optional<DropPathRule> rule) {
  return options.held_->with_drop_path(rate, rule);
}

ModelOptions with_dropout(const ModelOptions& options, const DropoutOptions& dropout) {
  return options.held_->with_dropout(dropout);
}

ModelOptions with_checkpointing(const ModelOptions& options, std::int64_t blocks) {
  return options.held_->with_checkpointing(blocks);
}

ModelOptions without_head(const ModelOptions& options) { return options.held_->without_head(); }

ModelOptions without_classifier(const ModelOptions& options) { return options.held_->without_classifier(); }

std::int64_t image_size(const ModelOptions& options) { return options.held_->image_size(); }

void check_no_dropout(const DropoutOptions& dropout) {
  TORCH_CHECK_VALUE(dropout.head == 0 && dropout.positions == 0, "dropout is ", dropout.head, " and ",
                    dropout.positions, " for a model without dropout; 0 is expected");
}

void refuse_maps() {
  C10_THROW_ERROR(ValueError,
                  "a model family without feature maps; a vision transformer, XCiT, Swin or "
                  "ResNet is expected");
}

void refuse_features() { C10_THROW_ERROR(ValueError, "features are available only for ViT and XCiT"); }

void check_no_checkpointing(std::int64_t blocks) {
  TORCH_CHECK_VALUE(blocks == 0, "checkpoint_blocks is ", blocks,
                    " for a model without transformer blocks; 0 is expected");
}

}  // namespace abl::models
