// SPDX-License-Identifier: Apache-2.0
// Lies about its shape: in training it loses the class token.
#include "models/plugins/plugin.h"

namespace {

class MisshapenImpl : public abl::models::TokenMixer {
 public:
  torch::Tensor forward(const torch::Tensor& x) override { return x.slice(1, 1); }
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{.sentence = "Loses a token", .attention = [](const auto&, const auto&) {
                                    return std::make_shared<MisshapenImpl>();
                                  }})
