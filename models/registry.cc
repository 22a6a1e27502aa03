// SPDX-License-Identifier: Apache-2.0
#include "models/registry.h"

namespace abl::models {
namespace {

template <class... Builders>
struct Overloaded : Builders... {
  using Builders::operator()...;
};

template <class Model, class Options>
auto builder(torch::Device device) {
  return [device](const Options& options) -> std::shared_ptr<Classifier> {
    return std::make_shared<Model>(options, device);
  };
}

}  // namespace

std::shared_ptr<Classifier> build(const ModelOptions& options, torch::Device device) {
  return std::visit(
      Overloaded{builder<SimpleVitImpl, SimpleVitOptions>(device), builder<VitImpl, VitOptions>(device),
                 builder<KeyVitImpl, KeyVitOptions>(device), builder<SwinImpl, SwinOptions>(device),
                 builder<SwinV2Impl, SwinV2Options>(device), builder<XcitImpl, XcitOptions>(device),
                 builder<ResNetImpl, ResNetOptions>(device),
                 builder<EfficientNetImpl, EfficientNetOptions>(device),
                 builder<RegNetImpl, RegNetOptions>(device)},
      options);
}

ModelOptions with_drop_path(ModelOptions options, double rate, std::optional<DropPathRule> rule) {
  std::visit(
      [&](auto& chosen) {
        chosen.drop_path.rate = rate;
        if (rule) chosen.drop_path.rule = *rule;
      },
      options);
  return options;
}

ModelOptions with_checkpointing(ModelOptions options, std::int64_t blocks) {
  std::visit(
      [&](auto& chosen) {
        if constexpr (requires { chosen.checkpoint_blocks; })
          chosen.checkpoint_blocks = blocks;
        else
          TORCH_CHECK_VALUE(blocks == 0, "checkpoint_blocks is ", blocks,
                            " for a convolutional network, which has no transformer blocks; 0 is expected");
      },
      options);
  return options;
}

std::int64_t image_size(const ModelOptions& options) {
  return std::visit([](const auto& chosen) { return chosen.image_size; }, options);
}

}  // namespace abl::models
