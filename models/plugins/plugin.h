// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/plugins/interface.h"

/// A model, or the attention of one, in a file of its own that the trainer loads: what you write against this
/// header is swept beside what is built in, without building ablate again. docs/plugins.md goes through an
/// example.
///
///   class FooImpl : public abl::models::TokenMixer { … };
///   ABLATE_PLUGIN(abl::models::Plugin{
///       .sentence = "What it computes.",
///       .keys = {{.name = "width", .sentence = "Of its one layer.", .value = 64, .low = 1}},
///       .attention = [](const auto& site, const auto& settings) { return std::make_shared<FooImpl>(…); }})
///
/// What is made of tensors alone compiles against it as against PyTorch. Of ablate's own layers,
/// abl::models::Linear and its like can be made on the meta device, and what they hold counts as
/// `params.weights`.
namespace abl::models {

/// What a key of a plugin holds.
using PluginValue = std::variant<bool, std::int64_t, double, std::string>;

/// One key of `model.plugin.options`. The type of `value`, which holds where the key is not written, is the
/// key's.
struct PluginKey {
  std::string name;
  std::string sentence;
  PluginValue value;
  double low = -std::numeric_limits<double>::infinity();  ///< of a number: the least
  double high = std::numeric_limits<double>::infinity();  ///< of a number: the most
  std::vector<std::string> choices{};                     ///< of a text; empty: any
};

/// The value of every key of a plugin. Throws: c10::TypeError, for a key that it did not declare or one of
/// another type: a mistake of the plugin, which whoever writes it reads.
class PluginSettings {
 public:
  PluginSettings() = default;
  explicit PluginSettings(std::map<std::string, PluginValue> values) : values_{std::move(values)} {}

  bool flag(const std::string& key) const { return get<bool>(key); }
  std::int64_t integer(const std::string& key) const { return get<std::int64_t>(key); }
  double number(const std::string& key) const { return get<double>(key); }
  const std::string& text(const std::string& key) const { return get<std::string>(key); }

 private:
  template <class T>
  const T& get(const std::string& key) const {
    const auto found = values_.find(key);
    TORCH_CHECK_TYPE(found != values_.end(), "the plugin reads the key '", key,
                     "', which it does not declare");
    const T* value = std::get_if<T>(&found->second);
    TORCH_CHECK_TYPE(value, "the plugin reads its key '", key, "' as another type than it declares");
    return *value;
  }

  std::map<std::string, PluginValue> values_;
};

/// What mixes the tokens of one layer: an attention, without norm and residual.
/// Shape: x [B, N, dim] -> [B, N, dim].
class TokenMixer : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
};

/// A whole model.
/// Shape: images [B, 3, S, S] -> [B, classes].
class ImageModel : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;
};

/// Where an attention stands. Its tensors are made on `device`, which may be the meta device: there a tensor
/// has a shape and no numbers, and models are counted.
struct AttentionSite {
  std::int64_t dim = 0;             ///< width of the tokens
  std::int64_t heads = 0;           ///< of the model; divides `dim`
  std::int64_t rows = 0;            ///< the image is rows × rows tokens, row by row
  std::int64_t leading_tokens = 0;  ///< before these: class and distillation token
  std::int64_t layer = 0;           ///< from 0
  std::int64_t depth = 0;           ///< of the model, layers
  torch::Device device = torch::kCPU;
};

/// Where a whole model stands.
struct ModelSite {
  std::int64_t image_size = 0;  ///< square, pixels
  std::int64_t classes = 0;
  double drop_path = 0;  ///< the recipe's
  torch::Device device = torch::kCPU;
};

/// What the file offers: one of `attention` and `model`. Both are called on the thread that builds the model,
/// once for each layer or model, in order; random numbers are PyTorch's, which the trial's seed has started.
struct Plugin {
  std::string sentence;
  std::vector<PluginKey> keys{};
  std::function<std::shared_ptr<TokenMixer>(const AttentionSite&, const PluginSettings&)> attention{};
  std::function<std::shared_ptr<ImageModel>(const ModelSite&, const PluginSettings&)> model{};
};

}  // namespace abl::models

/// Once in a plugin, outside of namespaces: the file is found by these two names. The first is read before
/// anything of the file is run.
#define ABLATE_PLUGIN(...)                                                      \
  extern "C" {                                                                  \
  [[gnu::visibility("default")]] extern const char ablate_plugin_interface[];   \
  [[gnu::used]] const char ablate_plugin_interface[] = ABLATE_PLUGIN_INTERFACE; \
  [[gnu::visibility("default")]] const abl::models::Plugin* ablate_plugin();    \
  const abl::models::Plugin* ablate_plugin() {                                  \
    static const abl::models::Plugin kPlugin = __VA_ARGS__;                     \
    return &kPlugin;                                                            \
  }                                                                             \
  }
