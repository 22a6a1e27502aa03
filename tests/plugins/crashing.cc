// SPDX-License-Identifier: Apache-2.0
// Ends its program at the first image.
#include <csignal>

#include "models/plugins/plugin.h"

namespace {

class CrashingImpl : public abl::models::TokenMixer {
 public:
  torch::Tensor forward(const torch::Tensor& x) override {
    if (!x.is_meta()) std::raise(SIGSEGV);
    return x;
  }
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{.sentence = "Crashes", .attention = [](const auto&, const auto&) {
                                    return std::make_shared<CrashingImpl>();
                                  }})
