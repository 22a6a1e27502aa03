// SPDX-License-Identifier: Apache-2.0
// Throws, in one of three places.
#include <stdexcept>

#include "models/plugins/plugin.h"

namespace {

using abl::models::AttentionSite;
using abl::models::PluginSettings;

class ThrowingImpl : public abl::models::TokenMixer {
 public:
  explicit ThrowingImpl(bool by_torch) : by_torch_{by_torch} {}
  torch::Tensor forward(const torch::Tensor& x) override {
    if (by_torch_) return x.matmul(x);  // [B, N, D] · [B, N, D]: no such product
    throw std::runtime_error{"not today\nnor tomorrow"};
  }

 private:
  const bool by_torch_;
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{.sentence = "Throws",
                                  .keys = {{.name = "where",
                                            .sentence = "Where it does.",
                                            .value = std::string{"forward"},
                                            .choices = {"start", "forward", "torch", "number"}}},
                                  .attention = [](const AttentionSite&, const PluginSettings& settings)
                                      -> std::shared_ptr<abl::models::TokenMixer> {
                                    const auto& where = settings.text("where");
                                    if (where == "start") throw std::runtime_error{"no licence"};
                                    if (where == "number") throw 42;
                                    return std::make_shared<ThrowingImpl>(where == "torch");
                                  }})
