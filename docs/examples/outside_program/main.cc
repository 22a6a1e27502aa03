// SPDX-License-Identifier: Apache-2.0
// XCiT-N12/16 (XCiT Table 1): one pass over a random image, and its parameters.
#include <torch/torch.h>

#include <cstdio>

#include "models/backbones/xcit.h"

int main() {
  using namespace abl::models;
  XcitOptions options{
      .image_size = 224, .patch = 16, .classes = 1000, .dim = 128, .heads = 4, .tokens_norm = false};
  options.blocks.resize(12);
  Xcit model{options};
  model->eval();
  const torch::NoGradGuard no_gradients;
  const auto logits = model->forward(torch::randn({1, 3, 224, 224}));
  long long parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.numel();
  std::printf("%lld logits, %lld parameters\n", static_cast<long long>(logits.size(1)), parameters);
}
