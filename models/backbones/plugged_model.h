// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/backbones/classifier.h"
#include "models/layers/drop_path.h"
#include "models/plugins/plugged.h"

namespace abl::models {

struct PluggedModelOptions {
  using Model = class PluggedModelImpl;
  static constexpr bool kHasBlocks = false;
  std::int64_t image_size = 0;  ///< square, pixels
  std::int64_t classes = 0;
  PluginUse plugin;
  DropPathOptions drop_path{};  ///< its rate is the plugin's to use
};

/// A whole model of a plugin, as the part `model`. What goes wrong in it is told with the plugin's name.
/// Shape: images [B, 3, S, S] -> [B, classes].
class PluggedModelImpl : public Classifier {
 public:
  /// Throws: Error{kInvalidArgument} where the plugin throws or makes nothing.
  explicit PluggedModelImpl(PluggedModelOptions options, torch::Device device = torch::kCPU);

  /// Throws: Error{kInvalidArgument} where the plugin throws, or returns anything of another shape.
  torch::Tensor forward(const torch::Tensor& images) override;

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<PluggedModelImpl>(options_, device);
  }

 private:
  const PluggedModelOptions options_;
  const std::string what_;  ///< "plugin small-net"
  Part<ImageModel> model_{nullptr};
};

}  // namespace abl::models
