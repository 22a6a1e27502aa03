// SPDX-License-Identifier: Apache-2.0
// Prints when it is made, wherever that is.
#include <cstdio>

#include "models/plugins/plugin.h"

namespace {

class TalkativeImpl : public abl::models::TokenMixer {
 public:
  torch::Tensor forward(const torch::Tensor& x) override { return x; }
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{.sentence = "Says what it likes",
                                  .attention = [](const auto&, const auto&) {
                                    std::puts("a word on stdout");
                                    std::fflush(stdout);
                                    return std::make_shared<TalkativeImpl>();
                                  }})
