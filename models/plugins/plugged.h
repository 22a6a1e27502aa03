// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <exception>
#include <memory>
#include <string>

#include "models/layers/part.h"
#include "models/plugins/plugin_file.h"

namespace abl::models {

/// A plugin and the values of its keys: what a model is made with.
struct PluginUse {
  std::shared_ptr<const PluginFile> file;
  PluginSettings settings;
};

/// A plugin's attention in a model. What goes wrong in it is told with its name.
class PluggedAttention {
 public:
  PluggedAttention() = default;
  /// Throws: Error{kInvalidArgument} where the plugin throws or makes nothing.
  PluggedAttention(const PluginUse& use, const AttentionSite& site);

  explicit operator bool() const { return static_cast<bool>(mixer_); }
  std::shared_ptr<TokenMixer> ptr() const { return mixer_.ptr(); }

  /// Shape: x [B, N, dim] -> [B, N, dim].
  /// Throws: Error{kInvalidArgument} where the plugin throws, or returns anything of another shape or type.
  torch::Tensor operator()(const torch::Tensor& x) const;

 private:
  std::string what_;  ///< "plugin linear-attention, layer 3"
  Part<TokenMixer> mixer_{nullptr};
};

/// Of a call into a plugin, what anything that it throws is told as: "WHAT: …", a mistake of the plugin that
/// another try would meet again. Memory that is used up and a GPU that is lost stay what they are, and what
/// the system refused (a file that is away, no descriptors, no room) is told as that.
[[noreturn]] void rethrow_of_plugin(const std::string& what);

/// Throws: Error{kInvalidArgument} unless `given` has the shape and type of `expected`.
void expect_like(const std::string& what, const torch::Tensor& given, torch::IntArrayRef shape);

/// Throws: Error{kInvalidArgument} where a parameter of what a plugin has made is on another device.
void expect_on(const std::string& what, const torch::nn::Module& made, torch::Device device);

}  // namespace abl::models
